//! Columns of a kernel's tiles: may all tiles shift? They may if columns are used only as offsets of accesses and in comparisons with the end of the row.
//!
//! ```text
//! %columns = arange {start = 0, end = 256}
//! %mask = lt %columns, (broadcast %n)                  the columns of the row
//! %v = load %x, (broadcast %row) + %columns {mask = %mask}
//! reduce (add %v, (cast %columns))                     stays: it depends on the columns that the row lacks
//! ```

use crate::analysis::affine::AffineFacts;
use crate::analysis::loops::Loop;
use crate::analysis::masks::Comparison;
use crate::analysis::polynomial::Polynomial;
use crate::analysis::symmetry::is_symmetric;
use crate::dtype::Dtype;
use crate::ir::{BinaryOp, CompareOp, ConstExpr, Function, Inst, Op, SideTable, Value};
use crate::passes::split_full_tiles::WIDEST;

/// Smaller tiles gain less than the tests in front cost.
const FEWEST: usize = 256;

/// How a kernel uses the columns of its tiles.
pub(super) struct Columns<'a> {
    func: &'a Function,
    pub(super) facts: AffineFacts,
    /// The elements of each tile.
    pub(super) elements: usize,
    /// The bytes of the shortest elements that are accessed.
    pub(super) shortest: i64,
    /// The end of a row.
    pub(super) end: Option<Polynomial>,
    /// The comparisons of columns with that end.
    pub(super) masks: Vec<Value>,
    /// Integers that depend on columns.
    of_columns: SideTable<Value, bool>,
    /// Is the mask false at every position without a column?
    is_mask: SideTable<Value, bool>,
}

impl<'a> Columns<'a> {
    /// `inner` are the ops of the loop.
    pub(super) fn new(func: &'a Function, inner: &[Inst]) -> Option<Columns<'a>> {
        let offset = inner
            .iter()
            .find_map(|inst| func.inst(*inst).op.access().map(|access| access.offset).filter(|offset| func.ty(*offset).is_tile()))?;
        let elements = func.ty(offset).numel();
        (elements >= FEWEST).then(|| Columns {
            func,
            facts: AffineFacts::through_products(),
            elements,
            shortest: WIDEST,
            end: None,
            masks: Vec::new(),
            of_columns: SideTable::new(),
            is_mask: SideTable::new(),
        })
    }

    /// Does the op compute the same in a shifted tile? Ops are visited in order.
    pub(super) fn allow(&mut self, inst: Inst, around: &Loop) -> bool {
        let func = self.func;
        let data = func.inst(inst);
        let is_own = |value: &Value| !func.ty(*value).is_tile() || func.ty(*value).extents()[..] == [self.elements];
        if !data.results.iter().all(is_own) {
            return false;
        }
        let mut uses_columns = false;
        data.op.for_each_operand(&mut |value| uses_columns |= self.of_columns[value]);
        if let Some(access) = data.op.access().filter(|access| func.ty(access.offset).is_tile()) {
            self.shortest = self.shortest.min(func.ty(access.base).dtype().bytes() as i64);
        }
        match data.op {
            Op::Arange { start: ConstExpr::Int(0), .. } => {
                self.of_columns[data.results[0]] = true;
                true
            }
            // The copies of all other ranges of positions would have to shift, too.
            Op::Arange { .. } => false,
            Op::Load { offset, mask, other, volatile: false, in_bounds: false, align: 0, .. } if func.ty(offset).is_tile() => {
                self.is_of_row(offset, mask) && other.is_none_or(|other| !self.of_columns[other])
            }
            Op::Store { offset, value, mask, in_bounds: false, align: 0, .. } if func.ty(offset).is_tile() => {
                self.is_of_row(offset, mask) && !self.of_columns[value]
            }
            // A scalar is loaded and stored as before.
            Op::Load { offset, .. } | Op::Store { offset, .. } => func.ty(offset).is_scalar(),
            Op::Reduce { combine, .. } => !uses_columns && is_symmetric(func, combine),
            Op::For { .. } => inst == around.inst && !uses_columns,
            Op::Yield { .. } => !uses_columns,
            Op::Broadcast { x } => func.ty(x).is_scalar(),
            Op::Compare { .. } if uses_columns => self.compares_with_end(data.results[0]),
            ref op if op.is_elementwise() => self.note(op, &data.results),
            _ => false,
        }
    }

    /// Is it an access of columns, and of no others than those of a row?
    fn is_of_row(&self, offset: Value, mask: Option<Value>) -> bool {
        self.of_columns[offset] && mask.is_some_and(|mask| self.is_mask[mask])
    }

    /// Notes a comparison of each column with the end of a row.
    fn compares_with_end(&mut self, result: Value) -> bool {
        let Some(comparison) = self.func.def_op(result).and_then(|op| Comparison::of(self.func, &mut self.facts, op)) else { return false };
        let Comparison { index, limit, .. } = &comparison;
        let is_column = index.start.is(0) && index.strides.len() == 1 && index.strides[0].is(1);
        let is_end = self.end.get_or_insert_with(|| limit.clone()) == limit;
        self.masks.push(result);
        self.is_mask[result] = true;
        comparison.op == CompareOp::Lt && is_column && is_end
    }

    /// Notes what an elementwise op computes from columns.
    fn note(&mut self, op: &Op, results: &[Value]) -> bool {
        let mut uses_columns = false;
        op.for_each_operand(&mut |value| uses_columns |= self.of_columns[value]);
        if let Op::Binary { op: BinaryOp::And, lhs, rhs } = op {
            let keeps_row = self.is_mask[*lhs] || self.is_mask[*rhs];
            results.iter().for_each(|result| self.is_mask[*result] = keeps_row);
        }
        results.iter().for_each(|result| self.of_columns[*result] = uses_columns);
        // Only tiles of `i64` may depend on the column.
        !uses_columns || results.iter().all(|result| self.func.ty(*result).is_tile() && self.func.ty(*result).dtype() == Dtype::I64)
    }
}
