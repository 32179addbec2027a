//! A kernel: its generics, its parameters, and the tables of values, ops and regions.

mod compact;

use crate::dtype::Dtype;
use crate::ir::arena::{Arena, Handle, Inst, Region, SideTable, Value};
use crate::ir::constexpr::ConstExpr;
use crate::ir::few::Few;
use crate::ir::ops::Op;
use crate::ir::requirement::Requirement;
use crate::ir::scratch::Scratch;
use crate::ir::types::Type;
use crate::layout::Layout;
use crate::location::{Loc, Name};

/// Maximum nesting depth of regions in a kernel, not counting its body. Every analysis follows regions by recursion.
pub const MAX_NESTING: usize = 96;

/// Maximum number of element-moving ops that [`Function::unmoved`] looks through, so that each query takes bounded time.
pub const MOST_MOVES: usize = 64;

/// A type parameter of a generic kernel and the dtypes that it allows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TypeParam {
    /// The parameter's name.
    pub name: Name,
    /// The dtypes that its bound allows.
    pub choices: Vec<Dtype>,
}

/// A constant parameter of a generic kernel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ConstParam {
    /// The parameter's name.
    pub name: Name,
    /// An integer type, `bool`, `f32` or `f64`.
    pub dtype: Dtype,
}

impl ConstParam {
    /// Its value, from the number that it is bound to: 0 or 1 for a `bool`, the bits of a float.
    pub fn constant(&self, number: i128) -> ConstExpr {
        match self.dtype {
            Dtype::Bool => ConstExpr::Bool(number != 0),
            Dtype::F32 => ConstExpr::Float(f32::from_bits(number as u32).into()),
            Dtype::F64 => ConstExpr::Float(f64::from_bits(number as u64)),
            _ => ConstExpr::Int(number),
        }
    }

    /// The number that it is bound to, for people: a float in digits.
    pub fn written(&self, number: i128) -> String {
        match self.dtype {
            Dtype::F32 => format!("{:?}", f32::from_bits(number as u32)),
            Dtype::F64 => format!("{:?}", f64::from_bits(number as u64)),
            _ => number.to_string(),
        }
    }
}

/// A parameter of the kernel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Param {
    /// The parameter's name.
    pub name: Name,
    /// The parameter's value in the body.
    pub value: Value,
}

/// The definition of a value.
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

/// The results of an op. Few ops have more than one.
pub type Results = Few<Value>;

/// An op with its results and source position.
#[derive(Clone, Debug)]
pub struct InstData {
    /// The op.
    pub op: Op,
    /// Its results.
    pub results: Results,
    /// The position in the user's source.
    pub loc: Loc,
}

/// A list of ops with parameters, ending in one terminator.
#[derive(Clone, Debug, Default)]
pub struct RegionData {
    /// The region's parameters.
    pub params: Vec<Value>,
    /// The ops in order.
    pub insts: Vec<Inst>,
}

/// A kernel.
///
/// Values, ops and regions live in tables and are named by handles; the regions hold the order of the ops. An op or value that no region
/// contains is dead and is not printed.
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
    /// The source files to which positions refer; the first is the kernel's own.
    pub files: Vec<Name>,
    /// May accesses outside a tensor reach memory? Otherwise every access is guarded.
    pub unchecked: bool,
    /// May a GPU contract a product and a sum into one fused operation?
    pub contract: bool,
    /// What code for a GPU with warpgroup products must have, without duplicates.
    pub requires: Vec<Requirement>,
    /// Are accesses outside their tensor reported? Set for a `.checked()` launch; not part of the text form.
    pub reports: bool,
    /// Do several CTAs share a program? Set from the schedule; not part of the text form.
    pub is_cluster: bool,
    /// The messages of `static_print!` from specialisation, in order; not part of the text form.
    pub notes: Vec<(Loc, String)>,
    /// The body; its parameters are the kernel's.
    pub body: Region,
    /// The distribution of each tile over threads and registers: set for every tile at the Gpu stage, for none before.
    pub layouts: SideTable<Value, Option<Layout>>,
    /// The shared memory of each op that uses some: set at the Ptx stage.
    pub scratch: SideTable<Inst, Option<Scratch>>,
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
            requires: Vec::new(),
            reports: false,
            is_cluster: false,
            notes: Vec::new(),
            body,
            layouts: SideTable::new(),
            scratch: SideTable::new(),
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

    /// Makes an op with results of those types, outside any region.
    pub fn make_inst(&mut self, op: Op, types: impl IntoIterator<Item = Type>, loc: Loc) -> Inst {
        let inst = self.insts.push(InstData { op, results: Few::Empty, loc });
        for (index, ty) in types.into_iter().enumerate() {
            let value = self.values.push(ValueData { ty, def: Def::Result(inst, index) });
            self.insts[inst].results.push(value);
        }
        inst
    }

    /// Makes an op and appends it to a region.
    pub fn append(&mut self, region: Region, op: Op, types: impl IntoIterator<Item = Type>, loc: Loc) -> Inst {
        let inst = self.make_inst(op, types, loc);
        self.regions[region].insts.push(inst);
        inst
    }

    /// Adds a result to an op, after the existing ones.
    pub fn add_result(&mut self, inst: Inst, ty: Type) -> Value {
        let value = self.values.push(ValueData { ty, def: Def::Result(inst, self.insts[inst].results.len()) });
        self.insts[inst].results.push(value);
        value
    }

    /// Removes the results of an op that nothing uses any more. The others keep their order.
    pub fn remove_results(&mut self, inst: Inst, is_unused: impl Fn(Value) -> bool) {
        self.insts[inst].results.retain(|result| !is_unused(*result));
        for (index, result) in self.insts[inst].results.clone().into_iter().enumerate() {
            self.values[result].def = Def::Result(inst, index);
        }
    }

    /// Replaces an op and makes an existing value its only result.
    pub fn redefine(&mut self, inst: Inst, op: Op, result: Value) {
        self.insts[inst].op = op;
        self.insts[inst].results = Few::One(result);
        self.values[result].def = Def::Result(inst, 0);
    }

    /// The type of a value.
    #[inline]
    pub fn ty(&self, value: Value) -> &Type {
        &self.values[value].ty
    }

    /// The definition of a value.
    #[inline]
    pub fn def(&self, value: Value) -> Def {
        self.values[value].def
    }

    /// The op that defines a value, unless it is a parameter.
    #[inline]
    pub fn def_op(&self, value: Value) -> Option<&Op> {
        match self.def(value) {
            Def::Result(inst, _) => Some(&self.insts[inst].op),
            Def::Param(..) => None,
        }
    }

    /// Is a tile a constant, or a broadcast scalar? Then all its elements are equal.
    pub fn is_splat(&self, tile: Value) -> bool {
        match self.def_op(tile) {
            Some(Op::Const { .. }) => true,
            Some(Op::Broadcast { x }) => self.ty(*x).is_scalar(),
            _ => false,
        }
    }

    /// The constant value of a scalar, or of every element of a tile, looking through a limited number of element-moving ops. (After
    /// `canonicalize` one such op suffices.)
    pub fn splat(&self, value: Value) -> Option<&ConstExpr> {
        match self.def_op(self.unmoved(value))? {
            Op::Const { value } => Some(value),
            _ => None,
        }
    }

    /// Is it a constant, or a tile of one, whose bits are all 0? Of floats, that is zero without a sign.
    pub fn has_zero_bits(&self, value: Value) -> bool {
        self.splat(value).is_some_and(|constant| match constant {
            ConstExpr::Float(number) => number.to_bits() == 0,
            constant => constant.as_int() == Some(0),
        })
    }

    /// The value whose elements `value` permutes or repeats, looking through at most [`MOST_MOVES`] ops.
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

    /// The number of values ever created: the bound of their indices.
    pub fn value_count(&self) -> usize {
        self.values.len()
    }

    /// An op with its results and source position.
    #[inline]
    pub fn inst(&self, inst: Inst) -> &InstData {
        &self.insts[inst]
    }

    /// Mutable access to an op.
    #[inline]
    pub fn inst_mut(&mut self, inst: Inst) -> &mut InstData {
        &mut self.insts[inst]
    }

    /// The only result of an op.
    ///
    /// # Panics
    /// If the op has none.
    #[inline]
    pub fn result(&self, inst: Inst) -> Value {
        self.insts[inst].results[0]
    }

    /// A region.
    #[inline]
    pub fn region(&self, region: Region) -> &RegionData {
        &self.regions[region]
    }

    /// Mutable access to the list of a region's ops.
    #[inline]
    pub fn insts_mut(&mut self, region: Region) -> &mut Vec<Inst> {
        &mut self.regions[region].insts
    }

    /// The terminator of a region.
    ///
    /// # Panics
    /// If the region is empty; a verified region never is.
    pub fn terminator(&self, region: Region) -> Inst {
        *self.regions[region].insts.last().expect("a verified region ends in a terminator")
    }

    /// The values that a region ending in `yield` or `condition` passes on.
    pub fn yielded(&self, region: Region) -> &[Value] {
        match &self.insts[self.terminator(region)].op {
            Op::Yield { values } | Op::Condition { values, .. } => values,
            _ => &[],
        }
    }

    /// The index of the kernel parameter, if the value is one.
    #[inline]
    pub fn param_index(&self, value: Value) -> Option<usize> {
        match self.def(value) {
            Def::Param(region, index) if region == self.body => Some(index),
            _ => None,
        }
    }

    /// The pointer of which another one is a view; the same pointer if it is none.
    pub fn viewed(&self, mut pointer: Value) -> Value {
        while let Some(Op::View { base }) = self.def_op(pointer) {
            pointer = *base;
        }
        pointer
    }

    /// Changes the type of a value.
    pub fn set_ty(&mut self, value: Value, ty: Type) {
        self.values[value].ty = ty;
    }

    /// The nesting depth of regions, not counting the body.
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

    /// Calls `visit` with every op in a region and in its nested regions, an op before the ops of its regions.
    pub fn for_each_inst(&self, region: Region, visit: &mut dyn FnMut(Inst)) {
        for inst in &self.regions[region].insts {
            visit(*inst);
            let op = &self.insts[*inst].op;
            if op.has_regions() {
                op.for_each_region(&mut |inner| self.for_each_inst(inner, visit));
            }
        }
    }

    /// Does the kernel contain `gdc_wait` or `gdc_launch_dependents`? Only then may its launches overlap with others.
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

    /// May the kernel write memory that belongs to none of its parameters? An `unchecked` kernel can, through a pointer made from an address.
    pub fn writes_elsewhere(&self) -> bool {
        self.all_insts().iter().any(|inst| match &self.insts[*inst].op {
            Op::Store { base, .. } | Op::Atomic { base, .. } => self.params.iter().all(|param| param.value != *base),
            Op::InlinePtx { volatile: true, .. } => self.unchecked,
            _ => false,
        })
    }

    /// A region and all regions nested in it, outer regions first.
    pub fn regions_under(&self, region: Region) -> Vec<Region> {
        let mut regions = vec![region];
        self.add_regions(region, &mut regions);
        regions
    }

    /// Appends the regions nested in a region: those of an op, and then the regions inside them.
    fn add_regions(&self, region: Region, regions: &mut Vec<Region>) {
        for inst in &self.regions[region].insts {
            let op = &self.insts[*inst].op;
            if op.has_regions() {
                op.for_each_region(&mut |inner| regions.push(inner));
                op.for_each_region(&mut |inner| self.add_regions(inner, regions));
            }
        }
    }

    /// The body and all regions nested in it, outer regions first, without the rare arms of branches.
    pub fn frequent_regions(&self) -> Vec<Region> {
        let mut rare = Vec::new();
        self.for_each_inst(self.body, &mut |inst| {
            if let Op::If { else_region, rare: true, .. } = self.inst(inst).op {
                rare.extend(self.regions_under(else_region));
            }
        });
        let mut regions = self.regions_under(self.body);
        regions.retain(|region| !rare.contains(region));
        regions
    }

    /// A handle above every value's, as the size of tables.
    pub fn next_value(&self) -> Value {
        Value::new(self.values.len())
    }
}
