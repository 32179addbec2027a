//! Forms: the tiles that are functions of an element's index, so that they need not be computed element by element.
//!
//! An `i64` tile is *affine* if it is `base + sum of coefficient * index` over its axes ([`crate::affine`]). A `bool` tile is a *mask* if it
//! compares such tiles and holds on one range of each row. Loads and stores work with the forms. Other ops need the elements, and a value
//! may be needed in both ways.
//!
//! ```text
//! %3 = arange {start = 0, end = 64}     affine [1]
//! %4 = broadcast %base                  affine [0]
//! %5 = add %4, %3                       affine [1]
//! %6 = broadcast %n                     affine [0]
//! %7 = lt %5, %6                        mask
//! %8 = load %x, %5 {mask = %7}          the elements of %5 and %7 are never computed
//! ```

use crate::affine::{self, Scalars};
use crate::code::Affine;
use kernel_lang::dtype::Dtype;
use kernel_lang::ir::{BinaryOp, CompareOp, Function, Inst, Op, Region, SideTable, Value};

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
    /// An affine `i64` tile: its base and its coefficients, as far as they are constants.
    Affine(Affine<Option<i64>>),
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
        func.ty(offset).is_scalar() || matches!(self.form[offset], Form::Affine(_))
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
            if let Form::Affine(Affine { coefficients, .. }) = &self.form[*init]
                && coefficients.iter().all(Option::is_some)
                && !self.refused[*param]
                && !self.is_last
            {
                self.form[*param] = Form::Affine(Affine { base: None, coefficients: coefficients.clone() });
            }
        }
        self.region(body);
        for ((next, param), result) in self.func.yielded(body).iter().zip(params).zip(results) {
            if let Form::Affine(Affine { coefficients, .. }) = self.form[*param].clone() {
                let kept = matches!(&self.form[*next], Form::Affine(next) if next.coefficients == coefficients);
                self.refused[*param] = !kept;
                self.again |= !kept;
                self.form[*result] = self.form[*param].clone();
            }
        }
    }

    fn of(&mut self, op: &Op, result: Value) -> Form {
        let func = self.func;
        match (op, func.ty(result).dtype()) {
            (_, Dtype::I64) => affine::result(self, func, op, result).map_or(Form::Plain, Form::Affine),
            (Op::Broadcast { x }, Dtype::Bool) if func.ty(*x).is_scalar() => Form::Mask { conditions: 1 },
            (Op::Broadcast { x } | Op::ExpandDims { x, .. }, Dtype::Bool) => self.form[*x].clone(),
            (Op::Binary { op: BinaryOp::And, lhs, rhs }, Dtype::Bool) => match (&self.form[*lhs], &self.form[*rhs]) {
                (Form::Mask { conditions: left }, Form::Mask { conditions: right }) if left + right <= MOST_CONDITIONS => {
                    Form::Mask { conditions: left + right }
                }
                _ => Form::Plain,
            },
            (Op::Compare { op, lhs, rhs }, _) => self.compare(*op, *lhs, *rhs),
            _ => Form::Plain,
        }
    }

    fn compare(&self, op: CompareOp, lhs: Value, rhs: Value) -> Form {
        let innermost = |value: Value| self.tile(value)?.coefficients.last().copied().flatten();
        let grows = |value: Value| matches!(innermost(value), Some(0 | 1));
        let ranged = !matches!(op, CompareOp::Eq | CompareOp::Ne);
        if ranged && grows(lhs) && grows(rhs) { Form::Mask { conditions: 1 } } else { Form::Plain }
    }
}

/// A scalar is known if it is a constant.
impl Scalars for Search<'_> {
    type Scalar = Option<i64>;

    fn constant(number: i64) -> Option<i64> {
        Some(number)
    }

    fn scalar(&self, value: Value) -> Option<i64> {
        affine::constant(self.func, value)
    }

    fn binary(&mut self, op: BinaryOp, lhs: Option<i64>, rhs: Option<i64>) -> Option<i64> {
        affine::folded(op, lhs, rhs)
    }

    fn tile(&self, value: Value) -> Option<Affine<Option<i64>>> {
        match &self.form[value] {
            Form::Affine(affine) => Some(affine.clone()),
            _ => None,
        }
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
        Op::LaunchValue { compute } => func.yielded(*compute).iter().for_each(want),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_that_follow_an_elements_index_have_forms() {
        let text = "kernel @k(%y: ptr_mut<i64>, %n: i64, %flag: bool) {
            %0 = arange {start = 2, end = 10} : tile<i64, [8]>
            %1 = const {value = 3} : tile<i64, [8]>
            %2 = mul %0, %1 : tile<i64, [8]>
            %3 = broadcast %n : tile<i64, [8]>
            %4 = mul %2, %3 : tile<i64, [8]>
            %5 = mul %0, %0 : tile<i64, [8]>
            %6 = lt %0, %3 : tile<bool, [8]>
            %7 = broadcast %flag : tile<bool, [8]>
            %8 = and %6, %7 : tile<bool, [8]>
            %9 = lt %2, %3 : tile<bool, [8]>
            %10 = expand_dims %2 {axis = 1} : tile<i64, [8, 1]>
            %11 = broadcast %10 : tile<i64, [8, 4]>
            %12 = permute %11 {order = [1, 0]} : tile<i64, [4, 8]>
            %13 = const {value = 0} : i64
            %14 = const {value = 1} : i64
            %15, %16 = for %13, %n, %14, %0, %0 (%i: i64, %moves: tile<i64, [8]>, %grows: tile<i64, [8]>) {
                %a = add %moves, %3 : tile<i64, [8]>
                %b = add %grows, %0 : tile<i64, [8]>
                yield %a, %b
            } : tile<i64, [8]>, tile<i64, [8]>
            return
        }";
        let func = kernel_lang::ir::parse(text).expect("it is well formed");
        let forms = compute(&func);
        let insts = &func.region(func.body).insts;
        let form = |at: usize| forms.of(func.inst(insts[at]).results[0]).clone();
        let affine = |base: Option<i64>, coefficients: &[Option<i64>]| Form::Affine(Affine { base, coefficients: coefficients.to_vec() });
        assert_eq!(form(2), affine(Some(6), &[Some(3)]));
        assert_eq!(form(4), affine(None, &[None]), "the factor is an argument");
        assert_eq!(form(5), Form::Plain, "it is a square");
        assert_eq!([form(6), form(8)], [1, 2].map(|conditions| Form::Mask { conditions }));
        assert_eq!(form(9), Form::Plain, "neighbours differ by 3, so that its elements may be no range");
        assert_eq!([form(11), form(12)], [affine(Some(6), &[Some(3), Some(0)]), affine(Some(6), &[Some(0), Some(3)])]);
        let carried = func.inst(insts[15]).results.iter().map(|result| forms.of(*result).clone()).collect::<Vec<_>>();
        assert_eq!(carried, [affine(None, &[Some(1)]), Form::Plain], "the coefficient of the second changes");
    }
}
