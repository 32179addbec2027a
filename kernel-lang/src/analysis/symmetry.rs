//! Symmetry of reductions: may the two sides of a combining region be exchanged?
//!
//! ```text
//! reduce %x (%a: f32, %b: f32) { %m = max %a, %b; yield %m }      symmetric: %m is the same formula of %b and %a
//! reduce %x (%a: f32, %b: f32) { yield %b }                       not symmetric: the last element
//! ```

use rustc_hash::FxHashMap;

use crate::ir::{Def, Function, Op, Region, SideTable, Value};

/// Whether `combine` gives the same result with its two sides exchanged. This is detected if every result is the same formula.
pub fn is_symmetric(func: &Function, combine: Region) -> bool {
    let mut formulas = Formulas { func, combine, numbers: FxHashMap::default(), known: [SideTable::new(), SideTable::new()] };
    func.yielded(combine).iter().all(|value| formulas.number(*value, false) == formulas.number(*value, true))
}

/// Value numbering of a region: equal numbers for equal formulas in the region's parameters.
struct Formulas<'a> {
    func: &'a Function,
    combine: Region,
    /// By the op without its operands, and the operands' numbers, sorted for commutative ops.
    numbers: FxHashMap<(String, Vec<usize>), usize>,
    /// The numbers of values, as they are and with the two runs exchanged.
    known: [SideTable<Value, Option<usize>>; 2],
}

impl Formulas<'_> {
    fn number(&mut self, value: Value, is_swapped: bool) -> usize {
        let (func, combine) = (self.func, self.combine);
        if let Some(known) = self.known[usize::from(is_swapped)][value] {
            return known;
        }
        let formula = match func.def(value) {
            Def::Param(region, index) if region == combine => {
                let count = func.region(combine).params.len();
                (format!("${}", if is_swapped { (index + count / 2) % count } else { index }), Vec::new())
            }
            Def::Result(inst, index) if func.region(combine).insts.contains(&inst) => {
                let mut op = func.inst(inst).op.clone();
                let mut operands = Vec::new();
                op.for_each_operand(&mut |operand| operands.push(self.number(operand, is_swapped)));
                if let Op::Binary { op, .. } = op
                    && op.is_commutative()
                {
                    operands.sort_unstable();
                }
                // With its operands replaced, the op's text contains only the operation.
                op.map_operands(&mut |_| func.region(combine).params[0]);
                (format!("{op:?}:{}:{index}", func.ty(value)), operands)
            }
            _ => (value.to_string(), Vec::new()),
        };
        let next = self.numbers.len();
        let number = *self.numbers.entry(formula).or_insert(next);
        self.known[usize::from(is_swapped)][value] = Some(number);
        number
    }
}
