//! Forms: the tiles that are functions of an element's index, so that they need not be computed element by element.
//!
//! An `i64` tile is *affine* if it is `base + sum of coefficient * index` over its axes. A `bool` tile is a *mask* if it compares such
//! tiles and holds on one range of each row. Loads and stores work with the forms. Other ops need the elements, and a value may be needed
//! in both ways.
//!
//! ```text
//! %3 = arange {start = 0, end = 64}     affine [1]
//! %4 = broadcast %base                  affine [0]
//! %5 = add %4, %3                       affine [1]
//! %6 = broadcast %n                     affine [0]
//! %7 = lt %5, %6                        mask
//! %8 = load %x, %5 {mask = %7}          the elements of %5 and %7 are never computed
//! ```

use kernel_lang::dtype::Dtype;
use kernel_lang::ir::{BinaryOp, CompareOp, Function, Inst, Op, Region, SideTable, UnaryOp, Value};

/// The maximum number of conditions in a mask. A mask with more is computed once, element by element.
const MOST_CONDITIONS: usize = 16;
/// The maximum number of searches for the forms of loop-carried tiles. In the last search all loop-carried tiles are plain.
const MOST_SEARCHES: usize = 8;

/// The form of a value.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) enum Form {
    /// No form: the value has only its elements.
    #[default]
    Plain,
    /// An affine `i64` tile: the coefficient of each axis and the base, as far as they are constants.
    Affine { coefficients: Vec<Option<i64>>, base: Option<i64> },
    /// A `bool` tile: a conjunction of `conditions` conditions on affine tiles.
    Mask { conditions: usize },
}

/// The forms of a kernel's values.
pub(super) struct Forms {
    form: SideTable<Value, Form>,
    wanted: SideTable<Value, bool>,
}

impl Forms {
    /// The form of a value.
    pub(super) fn of(&self, value: Value) -> &Form {
        &self.form[value]
    }

    /// Whether the value has a form other than plain.
    pub(super) fn is_symbolic(&self, value: Value) -> bool {
        self.form[value] != Form::Plain
    }

    /// Whether an op needs the elements of the value.
    pub(super) fn wants_tile(&self, value: Value) -> bool {
        !self.is_symbolic(value) || self.wanted[value]
    }

    /// Whether an access can use the form of this offset.
    pub(super) fn is_affine(&self, func: &Function, offset: Value) -> bool {
        func.ty(offset).is_scalar() || matches!(self.form[offset], Form::Affine { .. })
    }

    /// Whether an access with an affine offset can use the form of this mask.
    pub(super) fn is_mask(&self, func: &Function, mask: Value) -> bool {
        func.ty(mask).is_scalar() || matches!(self.form[mask], Form::Mask { .. })
    }
}

/// Computes the forms.
///
/// The search first assumes that a tile carried by a `for` keeps its initial coefficients. If the body changes them, the tile is plain, and
/// the search starts over.
pub(super) fn compute(func: &Function) -> Forms {
    let mut refused = SideTable::new();
    let mut searches = 0;
    loop {
        searches += 1;
        let mut search = Search { func, form: SideTable::new(), refused, again: false, is_last: searches == MOST_SEARCHES };
        search.region(func.body);
        if !search.again {
            let mut forms = Forms { form: search.form, wanted: SideTable::new() };
            func.all_insts().into_iter().for_each(|inst| want_operands(func, inst, &mut forms));
            return forms;
        }
        refused = search.refused;
    }
}

struct Search<'a> {
    func: &'a Function,
    form: SideTable<Value, Form>,
    refused: SideTable<Value, bool>,
    again: bool,
    /// Whether every carried tile is plain in this search.
    is_last: bool,
}

impl Search<'_> {
    fn region(&mut self, region: Region) {
        let func = self.func;
        for inst in &func.region(region).insts {
            let data = func.inst(*inst);
            match &data.op {
                Op::For { init, body, .. } => self.carried(init, *body, &data.results),
                op => {
                    if let [result] = data.results[..]
                        && func.ty(result).is_tile()
                    {
                        self.form[result] = self.of(op, result);
                    }
                    op.for_each_region(&mut |inner| self.region(inner));
                }
            }
        }
    }

    fn carried(&mut self, init: &[Value], body: Region, results: &[Value]) {
        let params = &self.func.region(body).params[1..];
        for (init, param) in init.iter().zip(params) {
            if let Form::Affine { coefficients, .. } = &self.form[*init]
                && coefficients.iter().all(Option::is_some)
                && !self.refused[*param]
                && !self.is_last
            {
                self.form[*param] = Form::Affine { coefficients: coefficients.clone(), base: None };
            }
        }
        self.region(body);
        for ((next, param), result) in self.func.yielded(body).iter().zip(params).zip(results) {
            if let Form::Affine { coefficients, .. } = self.form[*param].clone() {
                let kept = matches!(&self.form[*next], Form::Affine { coefficients: next, .. } if *next == coefficients);
                self.refused[*param] = !kept;
                self.again |= !kept;
                self.form[*result] = self.form[*param].clone();
            }
        }
    }

    fn of(&self, op: &Op, result: Value) -> Form {
        let func = self.func;
        let ty = func.ty(result);
        match (op, ty.dtype()) {
            (Op::Const { value }, Dtype::I64) => {
                Form::Affine { coefficients: vec![Some(0); ty.shape().len()], base: value.as_int().map(|int| int as i64) }
            }
            (Op::Arange { start, .. }, _) => Form::Affine { coefficients: vec![Some(1)], base: start.as_int().map(|int| int as i64) },
            (Op::Broadcast { x }, dtype) if func.ty(*x).is_scalar() => match dtype {
                Dtype::I64 => Form::Affine { coefficients: vec![Some(0); ty.shape().len()], base: scalar_constant(func, *x) },
                Dtype::Bool => Form::Mask { conditions: 1 },
                _ => Form::Plain,
            },
            (Op::Broadcast { x }, _) => match &self.form[*x] {
                Form::Affine { coefficients, base } => {
                    let extents = func.ty(*x).extents();
                    let spread = |(coefficient, extent): (&Option<i64>, &usize)| if *extent == 1 { Some(0) } else { *coefficient };
                    Form::Affine { coefficients: coefficients.iter().zip(&extents).map(spread).collect(), base: *base }
                }
                other => other.clone(),
            },
            (Op::ExpandDims { x, axis }, _) => match self.form[*x].clone() {
                Form::Affine { mut coefficients, base } => {
                    coefficients.insert(*axis as usize, Some(0));
                    Form::Affine { coefficients, base }
                }
                other => other,
            },
            (Op::Permute { x, order }, Dtype::I64) => match &self.form[*x] {
                Form::Affine { coefficients, base } => {
                    Form::Affine { coefficients: order.iter().map(|axis| coefficients[*axis as usize]).collect(), base: *base }
                }
                _ => Form::Plain,
            },
            (Op::Binary { op: BinaryOp::And, lhs, rhs }, Dtype::Bool) => match (&self.form[*lhs], &self.form[*rhs]) {
                (Form::Mask { conditions: left }, Form::Mask { conditions: right }) if left + right <= MOST_CONDITIONS => {
                    Form::Mask { conditions: left + right }
                }
                _ => Form::Plain,
            },
            (Op::Binary { op, lhs, rhs }, Dtype::I64) => affine_binary(*op, &self.form[*lhs], &self.form[*rhs]),
            (Op::Unary { op: UnaryOp::Neg, x }, Dtype::I64) => {
                let zero = Form::Affine { coefficients: vec![Some(0); ty.shape().len()], base: Some(0) };
                affine_binary(BinaryOp::Sub, &zero, &self.form[*x])
            }
            (Op::Compare { op, lhs, rhs }, _) => self.compare(*op, *lhs, *rhs),
            _ => Form::Plain,
        }
    }

    fn compare(&self, op: CompareOp, lhs: Value, rhs: Value) -> Form {
        let innermost = |value: Value| match &self.form[value] {
            Form::Affine { coefficients, .. } => coefficients.last().copied().flatten(),
            _ => None,
        };
        let grows = |value: Value| matches!(innermost(value), Some(0 | 1));
        let ranged = !matches!(op, CompareOp::Eq | CompareOp::Ne);
        if ranged && grows(lhs) && grows(rhs) { Form::Mask { conditions: 1 } } else { Form::Plain }
    }
}

/// The value of a scalar that is a constant.
pub(super) fn scalar_constant(func: &Function, value: Value) -> Option<i64> {
    match func.def_op(value) {
        Some(Op::Const { value }) => value.as_int().map(|int| int as i64),
        _ => None,
    }
}

fn affine_binary(op: BinaryOp, lhs: &Form, rhs: &Form) -> Form {
    let (Form::Affine { coefficients: a, base: a_base }, Form::Affine { coefficients: b, base: b_base }) = (lhs, rhs) else {
        return Form::Plain;
    };
    let each = |f: fn(i64, i64) -> i64| -> Form {
        let both = |(a, b): (&Option<i64>, &Option<i64>)| Some(f((*a)?, (*b)?));
        Form::Affine { coefficients: a.iter().zip(b).map(both).collect(), base: both((a_base, b_base)) }
    };
    let is_uniform = |coefficients: &[Option<i64>]| coefficients.iter().all(|coefficient| *coefficient == Some(0));
    match op {
        BinaryOp::Add => each(i64::wrapping_add),
        BinaryOp::Sub => each(i64::wrapping_sub),
        BinaryOp::Mul if is_uniform(a) || is_uniform(b) => {
            let (tile, factor) = if is_uniform(b) { (a, b_base) } else { (b, a_base) };
            let scaled = |coefficient: &Option<i64>| match (coefficient, factor) {
                (Some(0), _) => Some(0),
                (Some(coefficient), Some(factor)) => Some(coefficient.wrapping_mul(*factor)),
                _ => None,
            };
            let base = a_base.zip(*b_base).map(|(a, b)| a.wrapping_mul(b));
            Form::Affine { coefficients: tile.iter().map(scaled).collect(), base }
        }
        _ => Form::Plain,
    }
}

/// Marks the operands whose elements an op needs.
fn want_operands(func: &Function, inst: Inst, forms: &mut Forms) {
    let data = func.inst(inst);
    if data.results.iter().any(|result| forms.is_symbolic(*result)) && !data.op.has_effects() {
        return;
    }
    let mut want = |value: &Value| forms.wanted[*value] = true;
    match &data.op {
        Op::Load { offset, mask, other, .. } => {
            other.iter().for_each(&mut want);
            want_access(func, *offset, *mask, forms);
        }
        Op::Store { offset, value, mask, .. } => {
            want(value);
            want_access(func, *offset, *mask, forms);
        }
        Op::Atomic { offset, values, mask, .. } => {
            values.iter().for_each(&mut want);
            want_access(func, *offset, *mask, forms);
        }
        Op::For { init, body, .. } => {
            for ((init, next), param) in init.iter().zip(func.yielded(*body)).zip(&func.region(*body).params[1..]) {
                if !forms.is_symbolic(*param) {
                    forms.wanted[*init] = true;
                    forms.wanted[*next] = true;
                }
            }
        }
        Op::If { then_region, else_region, .. } => {
            [then_region, else_region].into_iter().for_each(|region| func.yielded(*region).iter().for_each(&mut want));
        }
        Op::While { init, test, body } => {
            init.iter().chain(func.yielded(*test)).chain(func.yielded(*body)).for_each(want);
        }
        // The enclosing op determines which values it needs.
        Op::Yield { .. } | Op::Condition { .. } => {}
        op => op.for_each_operand(&mut |value| want(&value)),
    }
}

fn want_access(func: &Function, offset: Value, mask: Option<Value>, forms: &mut Forms) {
    let affine = forms.is_affine(func, offset);
    forms.wanted[offset] |= !affine;
    if let Some(mask) = mask {
        forms.wanted[mask] |= !(affine && forms.is_mask(func, mask));
    }
}
