//! A kernel: its generics, parameters, and the tables of values, ops and regions.

use crate::dtype::Dtype;
use crate::ir::arena::{Arena, Handle, Inst, Region, SideTable, Value};
use crate::ir::constexpr::ConstExpr;
use crate::ir::ops::Op;
use crate::ir::types::Type;
use crate::layout::Layout;
use crate::location::{Loc, Name};

/// How many regions of a kernel may stand inside of each other, its body not counted. Whatever looks at a kernel follows its regions by recursion.
pub const MAX_NESTING: usize = 96;

/// How many ops that only move elements [`Function::unmoved`] looks through: each question about an operand then takes a bounded time.
pub const MOST_MOVES: usize = 64;

/// A type parameter of a generic kernel and the dtypes it may stand for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TypeParam {
    /// Its name.
    pub name: Name,
    /// What its bound allows.
    pub choices: Vec<Dtype>,
}

/// A constant parameter of a generic kernel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ConstParam {
    /// Its name.
    pub name: Name,
    /// An integer type or `bool`.
    pub dtype: Dtype,
}

/// A parameter of the kernel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Param {
    /// Its name.
    pub name: Name,
    /// The value it is in the body.
    pub value: Value,
}

/// Where a value comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Def {
    /// The n-th result of an op.
    Result(Inst, usize),
    /// The n-th parameter of a region; the kernel's parameters are those of its body.
    Param(Region, usize),
}

#[derive(Clone, Debug)]
struct ValueData {
    ty: Type,
    def: Def,
}

/// An op in its place: with its results and the user's line.
#[derive(Clone, Debug)]
pub struct InstData {
    /// The op.
    pub op: Op,
    /// Its results.
    pub results: Vec<Value>,
    /// The place in the user's source.
    pub loc: Loc,
}

/// A list of ops with parameters, ending in one terminator.
#[derive(Clone, Debug, Default)]
pub struct RegionData {
    /// Its parameters.
    pub params: Vec<Value>,
    /// Its ops in order.
    pub insts: Vec<Inst>,
}

/// A kernel.
///
/// Values, ops and regions live in tables and are named by handles; the order of ops stands in the regions. An op or value that
/// no region reaches is dead and is not printed.
#[derive(Clone, Debug)]
pub struct Function {
    /// The kernel's name.
    pub name: Name,
    /// Type parameters, in the order of the signature; empty once specialised.
    pub types: Vec<TypeParam>,
    /// Constant parameters, in the order of the signature; empty once specialised.
    pub consts: Vec<ConstParam>,
    /// Parameters, in the order of the signature.
    pub params: Vec<Param>,
    /// The source files that places name; the first is the kernel's own.
    pub files: Vec<Name>,
    /// May a lane touch memory outside its tensor? Otherwise every access is guarded.
    pub unchecked: bool,
    /// May a GPU round a product and the sum that takes it up once?
    pub contract: bool,
    /// Are lanes outside their tensor reported? Set for a `.checked()` launch; not part of the text.
    pub reports: bool,
    /// What `static_print!` said while the kernel was specialised, in order; not part of the text.
    pub notes: Vec<(Loc, String)>,
    /// The body; its parameters are the kernel's.
    pub body: Region,
    /// Who holds which element of a tile: of every tile at the Gpu stage, of none before.
    pub layouts: SideTable<Value, Option<Layout>>,
    values: Arena<Value, ValueData>,
    insts: Arena<Inst, InstData>,
    regions: Arena<Region, RegionData>,
}

impl Function {
    /// A kernel with an empty body.
    pub fn new(name: impl Into<Name>) -> Function {
        let mut regions = Arena::default();
        let body = regions.push(RegionData::default());
        Function {
            name: name.into(),
            types: Vec::new(),
            consts: Vec::new(),
            params: Vec::new(),
            files: Vec::new(),
            unchecked: false,
            contract: false,
            reports: false,
            notes: Vec::new(),
            body,
            layouts: SideTable::new(),
            values: Arena::default(),
            insts: Arena::default(),
            regions,
        }
    }

    /// Adds a parameter to the kernel.
    pub fn add_param(&mut self, name: impl Into<Name>, ty: Type) -> Value {
        let value = self.add_region_param(self.body, ty);
        self.params.push(Param { name: name.into(), value });
        value
    }

    /// Makes an empty region.
    pub fn add_region(&mut self) -> Region {
        self.regions.push(RegionData::default())
    }

    /// Adds a parameter to a region.
    pub fn add_region_param(&mut self, region: Region, ty: Type) -> Value {
        let index = self.regions[region].params.len();
        let value = self.values.push(ValueData { ty, def: Def::Param(region, index) });
        self.regions[region].params.push(value);
        value
    }

    /// Makes an op that stands nowhere yet, with results of those types.
    pub fn make_inst(&mut self, op: Op, types: impl IntoIterator<Item = Type>, loc: Loc) -> Inst {
        let inst = self.insts.push(InstData { op, results: Vec::new(), loc });
        for (index, ty) in types.into_iter().enumerate() {
            let value = self.values.push(ValueData { ty, def: Def::Result(inst, index) });
            self.insts[inst].results.push(value);
        }
        inst
    }

    /// Makes an op and puts it at the end of a region.
    pub fn append(&mut self, region: Region, op: Op, types: impl IntoIterator<Item = Type>, loc: Loc) -> Inst {
        let inst = self.make_inst(op, types, loc);
        self.regions[region].insts.push(inst);
        inst
    }

    /// Gives an op one more result, behind those it has.
    pub fn add_result(&mut self, inst: Inst, ty: Type) -> Value {
        let value = self.values.push(ValueData { ty, def: Def::Result(inst, self.insts[inst].results.len()) });
        self.insts[inst].results.push(value);
        value
    }

    /// Makes an op the one that defines a value, as its only result.
    pub fn redefine(&mut self, inst: Inst, op: Op, result: Value) {
        self.insts[inst].op = op;
        self.insts[inst].results = vec![result];
        self.values[result].def = Def::Result(inst, 0);
    }

    /// The type of a value.
    pub fn ty(&self, value: Value) -> &Type {
        &self.values[value].ty
    }

    /// Where a value comes from.
    pub fn def(&self, value: Value) -> Def {
        self.values[value].def
    }

    /// The op that defines a value, unless it is a parameter.
    pub fn def_op(&self, value: Value) -> Option<&Op> {
        match self.def(value) {
            Def::Result(inst, _) => Some(&self.insts[inst].op),
            Def::Param(..) => None,
        }
    }

    /// The constant that a scalar, or every element of a tile, is: as far as a few ops that only move elements lead there. (Where
    /// `canonicalize` has passed, one does.)
    pub fn splat(&self, value: Value) -> Option<&ConstExpr> {
        match self.def_op(self.unmoved(value))? {
            Op::Const { value } => Some(value),
            _ => None,
        }
    }

    /// The value whose elements are those of `value` in other positions or more often, behind [`MOST_MOVES`] ops at most.
    pub fn unmoved(&self, value: Value) -> Value {
        let mut at = value;
        for _ in 0..MOST_MOVES {
            match self.def_op(at) {
                Some(Op::Broadcast { x } | Op::ExpandDims { x, .. } | Op::Reshape { x } | Op::Permute { x, .. } | Op::Flip { x, .. }) => {
                    at = *x
                }
                _ => break,
            }
        }
        at
    }

    /// How many values there ever were: the bound of their indices.
    pub fn value_count(&self) -> usize {
        self.values.len()
    }

    /// An op with its results and place.
    pub fn inst(&self, inst: Inst) -> &InstData {
        &self.insts[inst]
    }

    /// An op, to change it.
    pub fn inst_mut(&mut self, inst: Inst) -> &mut InstData {
        &mut self.insts[inst]
    }

    /// The only result of an op.
    ///
    /// # Panics
    /// If the op has none.
    pub fn result(&self, inst: Inst) -> Value {
        self.insts[inst].results[0]
    }

    /// A region.
    pub fn region(&self, region: Region) -> &RegionData {
        &self.regions[region]
    }

    /// The list of a region's ops, to change it.
    pub fn insts_mut(&mut self, region: Region) -> &mut Vec<Inst> {
        &mut self.regions[region].insts
    }

    /// The op that ends a region.
    ///
    /// # Panics
    /// If the region is empty: a verified one never is.
    pub fn terminator(&self, region: Region) -> Inst {
        *self.regions[region].insts.last().expect("a verified region ends in a terminator")
    }

    /// What a region ending in `yield` or `condition` gives.
    pub fn yielded(&self, region: Region) -> &[Value] {
        match &self.insts[self.terminator(region)].op {
            Op::Yield { values } | Op::Condition { values, .. } => values,
            _ => &[],
        }
    }

    /// The kernel parameter that a value is, by its index.
    pub fn param_index(&self, value: Value) -> Option<usize> {
        match self.def(value) {
            Def::Param(region, index) if region == self.body => Some(index),
            _ => None,
        }
    }

    /// Changes the type of a value.
    pub fn set_ty(&mut self, value: Value, ty: Type) {
        self.values[value].ty = ty;
    }

    /// How many regions stand inside of each other, the body not counted.
    pub fn nesting(&self) -> usize {
        let (mut deepest, mut next) = (0, vec![(self.body, 0)]);
        while let Some((region, depth)) = next.pop() {
            deepest = deepest.max(depth);
            for inst in &self.regions[region].insts {
                self.insts[*inst].op.for_each_region(&mut |inner| next.push((inner, depth + 1)));
            }
        }
        deepest
    }

    /// Calls `visit` with every op under a region, an op before the ops of its regions.
    pub fn for_each_inst(&self, region: Region, visit: &mut dyn FnMut(Inst)) {
        for inst in &self.regions[region].insts {
            visit(*inst);
            self.insts[*inst].op.for_each_region(&mut |inner| self.for_each_inst(inner, visit));
        }
    }

    /// Does it say when it waits for the launch before it, or lets the one behind begin? Only then may launches of it overlap with others.
    pub fn overlaps(&self) -> bool {
        let mut overlaps = false;
        self.for_each_inst(self.body, &mut |inst| overlaps |= matches!(self.inst(inst).op, Op::GdcWait {} | Op::GdcLaunchDependents {}));
        overlaps
    }

    /// Every op of the kernel, an op before the ops of its regions.
    pub fn all_insts(&self) -> Vec<Inst> {
        let mut insts = Vec::new();
        self.for_each_inst(self.body, &mut |inst| insts.push(inst));
        insts
    }

    /// Is there a `device_print!`?
    pub fn has_prints(&self) -> bool {
        self.all_insts().iter().any(|inst| matches!(self.insts[*inst].op, Op::Print { .. }))
    }

    /// May it write memory that belongs to none of its parameters? What an `unchecked` kernel makes of addresses is such.
    pub fn writes_elsewhere(&self) -> bool {
        self.all_insts().iter().any(|inst| match &self.insts[*inst].op {
            Op::Store { base, .. } | Op::Atomic { base, .. } => self.params.iter().all(|param| param.value != *base),
            Op::InlinePtx { volatile: true, .. } => self.unchecked,
            _ => false,
        })
    }

    /// Every region under (and with) a region, an outer one first.
    pub fn regions_under(&self, region: Region) -> Vec<Region> {
        let mut regions = vec![region];
        self.for_each_inst(region, &mut |inst| self.insts[inst].op.for_each_region(&mut |inner| regions.push(inner)));
        regions
    }

    /// An index above every value's, for tables.
    pub fn next_value(&self) -> Value {
        Value::new(self.values.len())
    }
}
