//! Unit strides: finds the arguments that are strides of a tile's index, and may thus be 1.
//!
//! ```text
//! %1 = arange {start = 0, end = B}
//! %2 = mul %1, (broadcast %stride)     %stride is a stride of the load
//! %3 = mul %row, %stride_row           %stride_row is not: all elements are in the same row
//! %4 = add %2, (broadcast %3)
//! load %x, %4
//! ```
//!
//! If such an argument is known to be 1, neighbours in a tile are neighbours in memory. A variant of the kernel for that value is therefore
//! worthwhile. The same holds for the factor of a coordinate `index % size`. An index with a stride of 1 along some axis needs no variant. The
//! kernel may be generic: the analysis needs no extents.

use rustc_hash::FxHashSet;

use crate::analysis::affine::AffineFacts;
use crate::analysis::ranges::divisor;
use crate::ir::{BinaryOp, Function, Op, SideTable, Value};

/// The analysis ignores an index that is computed from more values: such an index gets no variant.
const MOST_PARTS: usize = 256;

/// The pairs of a tensor and a scalar, both parameters of the kernel, where the scalar is a stride of an access to the tensor. Each pair
/// appears once, in the order of the parameters.
pub fn compute(func: &Function) -> Vec<(Value, Value)> {
    let mut cx = Steps {
        func,
        carried: carried(func),
        facts: AffineFacts::new(),
        seen: FxHashSet::default(),
        long: SideTable::new(),
        found: Vec::new(),
        is_row: false,
    };
    let mut pairs = Vec::new();
    for access in func.all_insts().into_iter().filter_map(|inst| func.inst(inst).op.access()) {
        cx.is_row = false;
        cx.seen.clear();
        cx.index(access.offset);
        let found = std::mem::take(&mut cx.found);
        if !cx.is_row {
            pairs.extend(found.into_iter().map(|step| (access.base, step)));
        }
    }
    pairs.retain(|(tensor, _)| func.param_index(*tensor).is_some());
    pairs.sort_by_key(|(tensor, step)| (func.param_index(*tensor), func.param_index(*step)));
    pairs.dedup();
    pairs
}

struct Steps<'a> {
    func: &'a Function,
    carried: SideTable<Value, Vec<Value>>,
    facts: AffineFacts,
    /// Values visited for this access; values that loops carry form cycles.
    seen: FxHashSet<Value>,
    /// Indices that are computed from too many values. An index computed from such an index is long, too.
    long: SideTable<Value, bool>,
    found: Vec<Value>,
    /// Does the access have a stride of 1 whatever values the arguments have?
    is_row: bool,
}

impl Steps<'_> {
    /// Looks for strides in an index.
    fn index(&mut self, index: Value) {
        let func = self.func;
        let mut next = vec![index];
        while let Some(value) = next.pop() {
            if func.ty(value).is_scalar() || !self.seen.insert(value) {
                continue;
            }
            if self.seen.len() > MOST_PARTS || self.long[value] {
                (self.is_row, self.long[index]) = (true, true);
                return;
            }
            next.extend(&self.carried[value]);
            match func.def_op(value) {
                Some(Op::Binary { op: BinaryOp::Mul, lhs, rhs }) if self.argument(*lhs).or_else(|| self.argument(*rhs)).is_some() => {
                    for (step, index) in [(*lhs, *rhs), (*rhs, *lhs)] {
                        if let Some(param) = self.argument(step)
                            && self.has_neighbours(index)
                        {
                            self.found.push(param);
                        }
                    }
                }
                Some(Op::Binary { op: BinaryOp::Add | BinaryOp::Sub, lhs, rhs }) => next.extend([*lhs, *rhs]),
                Some(Op::Broadcast { x } | Op::ExpandDims { x, .. } | Op::Permute { x, .. } | Op::Reshape { x } | Op::Flip { x, .. }) => {
                    next.push(*x);
                }
                _ => self.is_row |= self.has_neighbours(value),
            }
        }
    }

    /// Does the index have a stride of 1 along some axis? A coordinate `index % size` has it wherever no line ends.
    fn has_neighbours(&mut self, index: Value) -> bool {
        let func = self.func;
        let mut index = index;
        for _ in 0..MOST_PARTS {
            match func.def_op(index) {
                Some(Op::Binary { op: BinaryOp::Rem, lhs, rhs }) if divisor(func, *rhs).is_some() => index = *lhs,
                _ => break,
            }
        }
        (0..func.ty(index).shape().len()).any(|axis| self.facts.step(func, index, axis) == Some(1))
    }

    /// The argument that every element of the tile equals.
    fn argument(&self, value: Value) -> Option<Value> {
        Some(broadcast_source(self.func, value)).filter(|source| self.func.param_index(*source).is_some())
    }
}

/// The value that broadcasts, reshapes and casts made this tile of.
fn broadcast_source(func: &Function, value: Value) -> Value {
    let mut at = value;
    for _ in 0..MOST_PARTS {
        match func.def_op(at) {
            Some(Op::Broadcast { x } | Op::ExpandDims { x, .. } | Op::Reshape { x } | Op::Cast { x }) => at = *x,
            _ => break,
        }
    }
    at
}

/// For each value that a branch or a loop passes on: the values that it may be.
fn carried(func: &Function) -> SideTable<Value, Vec<Value>> {
    let mut carried: SideTable<Value, Vec<Value>> = SideTable::new();
    let mut connect = |to: &[Value], from: &[Value]| to.iter().zip(from).for_each(|(to, from)| carried[*to].push(*from));
    for inst in func.all_insts() {
        let data = func.inst(inst);
        match &data.op {
            Op::If { then_region, else_region, .. } | Op::StaticIf { then_region, else_region, .. } => {
                connect(&data.results, func.yielded(*then_region));
                connect(&data.results, func.yielded(*else_region));
            }
            Op::For { init, body, .. } => {
                connect(func.region(*body).params.get(1..).unwrap_or_default(), init);
                connect(&data.results, init);
            }
            Op::StaticFor { init, body, .. } => {
                connect(&func.region(*body).params, init);
                connect(&data.results, init);
            }
            Op::While { init, test, body } => {
                connect(&func.region(*test).params, init);
                connect(&func.region(*body).params, init);
                connect(&data.results, init);
            }
            _ => {}
        }
    }
    carried
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(text: &str) -> Vec<(String, String)> {
        let func = crate::ir::parse(text).expect("it parses");
        let name = |value: Value| func.params.iter().find(|param| param.value == value).expect("a parameter").name.to_string();
        compute(&func).into_iter().map(|(tensor, step)| (name(tensor), name(step))).collect()
    }

    fn pairs(list: &[(&str, &str)]) -> Vec<(String, String)> {
        list.iter().map(|(tensor, step)| ((*tensor).to_owned(), (*step).to_owned())).collect()
    }

    #[test]
    fn a_factor_of_the_element_index_is_a_step() {
        let text = "
            kernel @k<const M: i64, const N: i64>(%x: ptr<f32>, %y: ptr_mut<f32>, %row: i64, %sx: i64, %narrow: i32, %sy: i64, %n: i64) {
                %i = arange {start = 0, end = M} : tile<i64, [M]>
                %j = arange {start = 0, end = N} : tile<i64, [N]>
                %first = mul %row, %sy : i64
                %start = broadcast %first : tile<i64, [M]>
                %by = broadcast %sx : tile<i64, [M]>
                %at = mul %i, %by : tile<i64, [M]>
                %index = add %start, %at : tile<i64, [M]>
                %rows = expand_dims %index {axis = 1} : tile<i64, [M, 1]>
                %wide = cast %narrow : i64
                %all = broadcast %wide : tile<i64, [N]>
                %across = mul %all, %j : tile<i64, [N]>
                %columns = expand_dims %across {axis = 0} : tile<i64, [1, N]>
                %a = broadcast %rows : tile<i64, [M, N]>
                %b = broadcast %columns : tile<i64, [M, N]>
                %offsets = add %a, %b : tile<i64, [M, N]>
                %v = load %x, %offsets : tile<f32, [M, N]>
                store %y, %b, %v
                return
            }";
        assert_eq!(steps(text), pairs(&[("x", "sx"), ("x", "narrow"), ("y", "narrow")]));
    }

    #[test]
    fn a_loop_hands_steps_on() {
        let text = "
            kernel @k<const N: i64>(%x: ptr<f32>, %n: i64, %step: i64, %other: i64) {
                %i = arange {start = 0, end = N} : tile<i64, [N]>
                %by = broadcast %step : tile<i64, [N]>
                %at = mul %i, %by : tile<i64, [N]>
                %zero = const {value = 0} : i64
                %one = const {value = 1} : i64
                %far = broadcast %other : tile<i64, [N]>
                %end = for %zero, %n, %one, %at (%iteration: i64, %offsets: tile<i64, [N]>) {
                    %v = load %x, %offsets : tile<f32, [N]>
                    %next = add %offsets, %far : tile<i64, [N]>
                    yield %next
                } : tile<i64, [N]>
                return
            }";
        assert_eq!(steps(text), pairs(&[("x", "step")]));
    }

    #[test]
    fn rows_that_are_read_along_need_no_step() {
        let text = "
            kernel @k<const N: i64>(%x: ptr<f32>, %stride: i64, %first: i64) {
                %i = arange {start = 0, end = N} : tile<i64, [N]>
                %by = broadcast %stride : tile<i64, [N]>
                %rows = mul %i, %by : tile<i64, [N]>
                %row = expand_dims %rows {axis = 1} : tile<i64, [N, 1]>
                %start = broadcast %first : tile<i64, [N]>
                %columns = add %start, %i : tile<i64, [N]>
                %column = expand_dims %columns {axis = 0} : tile<i64, [1, N]>
                %a = broadcast %row : tile<i64, [N, N]>
                %b = broadcast %column : tile<i64, [N, N]>
                %at = add %a, %b : tile<i64, [N, N]>
                %v = load %x, %at : tile<f32, [N, N]>
                return
            }";
        assert_eq!(steps(text), pairs(&[]));
    }

    #[test]
    fn a_factor_of_a_coordinate_is_a_step() {
        // The coordinates of a flat index: the first of `x` needs its stride, and `y` has none to know.
        let text = "
            kernel @k<const N: i64>(%x: ptr<f32>, %y: ptr<f32>, %size: i64, %first: i64, %second: i64) {
                %i = arange {start = 0, end = N} : tile<i64, [N]>
                %sizes = broadcast %size : tile<i64, [N]>
                %column = rem %i, %sizes : tile<i64, [N]>
                %row = div %i, %sizes : tile<i64, [N]>
                %firsts = broadcast %first : tile<i64, [N]>
                %seconds = broadcast %second : tile<i64, [N]>
                %across = mul %column, %firsts : tile<i64, [N]>
                %down = mul %row, %seconds : tile<i64, [N]>
                %offsets = add %down, %across : tile<i64, [N]>
                %v = load %x, %offsets : tile<f32, [N]>
                %at = add %down, %column : tile<i64, [N]>
                %w = load %y, %at : tile<f32, [N]>
                %turns = rem %i, %row : tile<i64, [N]>
                %turned = mul %turns, %seconds : tile<i64, [N]>
                %u = load %y, %turned : tile<f32, [N]>
                return
            }";
        assert_eq!(steps(text), pairs(&[("x", "first")]));
    }

    #[test]
    fn what_is_no_neighbour_is_no_step() {
        // Twice the position, and rows from memory: with a stride of 1, neighbours in these tiles are still not neighbours in memory.
        let text = "
            kernel @k<const N: i64>(%x: ptr<f32>, %p: ptr<i64>, %n: i64, %m: i64) {
                %i = arange {start = 0, end = N} : tile<i64, [N]>
                %two = const {value = 2} : tile<i64, [N]>
                %even = mul %i, %two : tile<i64, [N]>
                %by = broadcast %n : tile<i64, [N]>
                %at = mul %even, %by : tile<i64, [N]>
                %v = load %x, %at : tile<f32, [N]>
                %rows = load %p, %i : tile<i64, [N]>
                %times = broadcast %m : tile<i64, [N]>
                %offsets = mul %rows, %times : tile<i64, [N]>
                %w = load %x, %offsets : tile<f32, [N]>
                return
            }";
        assert_eq!(steps(text), pairs(&[]));
    }
}
