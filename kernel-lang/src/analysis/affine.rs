//! Indices as sums: `uniform + constant + lane_0 * i_0 + lane_1 * i_1 + ..`, modulo 2^64.
//!
//! `uniform` is a sum of `i64` scalars, the same for every element of a tile; `i_k` is the element's position along axis k. From this
//! form follow coalescing and vector widths (a lane coefficient of 1), immediate offsets, and proofs that a whole tile is in bounds.
//!
//! ```text
//! %3 = arange {start = 2, end = 66}          2 + 1 * i_0
//! %4 = broadcast %base                       %base
//! %5 = add %4, %3                            %base + 2 + 1 * i_0
//! %6 = mul %5, (const 4)                     4 * %base + 8 + 4 * i_0
//! ```

use crate::dtype::Dtype;
use crate::ir::{BinaryOp, Builder, ConstExpr, Elem, Function, Op, SideTable, UnaryOp, Value};

/// An index as a sum. Equality of the parts is equality of the indices, whatever the scalars are.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Affine {
    /// Scalars with their coefficients, in the order of their handles, none with coefficient 0.
    pub uniform: Vec<(Value, i64)>,
    /// What is added to every element.
    pub constant: i64,
    /// A coefficient per axis of the tile.
    pub lanes: Vec<i64>,
}

impl Affine {
    /// A number, for every element of a tile of that rank.
    pub fn constant(constant: i64, rank: usize) -> Affine {
        Affine { uniform: Vec::new(), constant, lanes: vec![0; rank] }
    }

    /// Has every element the same value?
    pub fn is_uniform(&self) -> bool {
        self.lanes.iter().all(|lane| *lane == 0)
    }

    /// The number that it is, if it is the same known one everywhere.
    pub fn as_constant(&self) -> Option<i64> {
        (self.uniform.is_empty() && self.is_uniform()).then_some(self.constant)
    }

    /// The largest sum of lane terms in a tile of those extents, if no lane term is negative and the sum fits 31 bits.
    /// The smallest is then 0.
    pub fn lane_maximum(&self, extents: &[usize]) -> Option<i64> {
        let mut sum = 0i64;
        for (lane, extent) in self.lanes.iter().zip(extents) {
            let term = i64::try_from(extent.saturating_sub(1)).ok()?.checked_mul(*lane)?;
            sum = sum.checked_add(term).filter(|_| *lane >= 0)?;
        }
        (sum < 1 << 31).then_some(sum)
    }

    /// Appends ops that compute the part that is the same for every lane, as a scalar.
    pub fn uniform_value(&self, b: &mut Builder<'_>) -> Value {
        let mut sum: Option<Value> = None;
        for (value, coefficient) in &self.uniform {
            let term = if *coefficient == 1 {
                *value
            } else {
                let coefficient = b.index((*coefficient).into());
                b.binary(BinaryOp::Mul, *value, coefficient)
            };
            sum = Some(sum.map_or(term, |sum| b.binary(BinaryOp::Add, sum, term)));
        }
        match sum {
            Some(sum) if self.constant == 0 => sum,
            Some(sum) => {
                let constant = b.index(self.constant.into());
                b.binary(BinaryOp::Add, sum, constant)
            }
            None => b.index(self.constant.into()),
        }
    }

    /// The sum of two indices of one rank.
    #[must_use]
    pub fn plus(&self, other: &Affine) -> Affine {
        self.add(other, 1)
    }

    /// The difference of two indices of one rank.
    #[must_use]
    pub fn minus(&self, other: &Affine) -> Affine {
        self.add(other, -1)
    }

    fn add(&self, other: &Affine, sign: i64) -> Affine {
        let mut uniform = self.uniform.clone();
        for (value, coefficient) in &other.uniform {
            let term = coefficient.wrapping_mul(sign);
            match uniform.binary_search_by_key(value, |(value, _)| *value) {
                Ok(found) => uniform[found].1 = uniform[found].1.wrapping_add(term),
                Err(place) => uniform.insert(place, (*value, term)),
            }
        }
        uniform.retain(|(_, coefficient)| *coefficient != 0);
        let lanes = self.lanes.iter().zip(&other.lanes).map(|(a, b)| a.wrapping_add(b.wrapping_mul(sign))).collect();
        Affine { uniform, constant: self.constant.wrapping_add(other.constant.wrapping_mul(sign)), lanes }
    }

    fn scale(&self, factor: i64) -> Affine {
        let mut scaled = self.clone();
        scaled.uniform.iter_mut().for_each(|(_, coefficient)| *coefficient = coefficient.wrapping_mul(factor));
        scaled.uniform.retain(|(_, coefficient)| *coefficient != 0);
        scaled.constant = scaled.constant.wrapping_mul(factor);
        scaled.lanes.iter_mut().for_each(|lane| *lane = lane.wrapping_mul(factor));
        scaled
    }
}

/// The affine form of indices of one kernel, computed when asked for.
#[derive(Debug, Default)]
pub struct AffineFacts {
    known: SideTable<Value, Option<Option<Affine>>>,
}

impl AffineFacts {
    /// Nothing is computed yet.
    pub fn new() -> AffineFacts {
        AffineFacts::default()
    }

    /// The affine form of an `i64` scalar or tile; every scalar has one, its own value if nothing better.
    pub fn get(&mut self, func: &Function, value: Value) -> Option<Affine> {
        if let Some(known) = &self.known[value] {
            return known.clone();
        }
        let found = self.compute(func, value);
        self.known[value] = Some(found.clone());
        found
    }

    /// By how much an index grows from one element to the next along an axis, where that is known: also of an index that has no affine form as
    /// a whole, such as `rows * stride + columns` with a stride that is an argument.
    pub fn step(&mut self, func: &Function, value: Value, axis: usize) -> Option<i64> {
        if let Some(affine) = self.get(func, value) {
            return Some(affine.lanes[axis]);
        }
        if func.ty(value).shape().get(axis)?.as_int() == Some(1) {
            return Some(0);
        }
        match func.def_op(value)? {
            Op::Broadcast { x } if func.ty(*x).is_scalar() || func.ty(*x).shape()[axis].as_int() == Some(1) => Some(0),
            Op::Broadcast { x } => self.step(func, *x, axis),
            Op::ExpandDims { x, axis: new } => self.step(func, *x, if axis < *new as usize { axis } else { axis - 1 }),
            Op::Permute { x, order } => self.step(func, *x, order[axis] as usize),
            Op::Convert { x } => self.step(func, *x, axis),
            Op::Flip { x, axis: flipped } => {
                let step = self.step(func, *x, axis)?;
                Some(if axis == *flipped as usize { step.wrapping_neg() } else { step })
            }
            Op::Binary { op: BinaryOp::Add, lhs, rhs } => Some(self.step(func, *lhs, axis)?.wrapping_add(self.step(func, *rhs, axis)?)),
            Op::Binary { op: BinaryOp::Sub, lhs, rhs } => Some(self.step(func, *lhs, axis)?.wrapping_sub(self.step(func, *rhs, axis)?)),
            // What is the same along the axis stays so, whatever it is multiplied by or computed from.
            Op::Binary { lhs, rhs, .. } => (self.step(func, *lhs, axis)? == 0 && self.step(func, *rhs, axis)? == 0).then_some(0),
            _ => None,
        }
    }

    fn compute(&mut self, func: &Function, value: Value) -> Option<Affine> {
        let ty = func.ty(value);
        if ty.is_pointer() || ty.elem() != &Elem::Dtype(Dtype::I64) {
            return None;
        }
        let derived = func.def_op(value).and_then(|op| self.derive(func, op, ty.shape()));
        derived.or_else(|| ty.is_scalar().then(|| Affine { uniform: vec![(value, 1)], constant: 0, lanes: Vec::new() }))
    }

    fn derive(&mut self, func: &Function, op: &Op, shape: &[ConstExpr]) -> Option<Affine> {
        let rank = shape.len();
        match op {
            Op::Const { value: ConstExpr::Int(value) } => Some(Affine::constant(i64::try_from(*value).ok()?, rank)),
            Op::Arange { start, .. } => {
                Some(Affine { uniform: Vec::new(), constant: i64::try_from(start.as_int()?).ok()?, lanes: vec![1] })
            }
            Op::Broadcast { x } => {
                let mut affine = self.get(func, *x)?;
                let from = func.ty(*x).shape();
                // An axis of extent 1 has the one position 0, whatever its coefficient was.
                let lanes = (0..rank).map(|axis| match from.get(axis) {
                    Some(extent) if extent.as_int() != Some(1) => affine.lanes[axis],
                    _ => 0,
                });
                affine.lanes = lanes.collect();
                Some(affine)
            }
            Op::ExpandDims { x, axis } => {
                let mut affine = self.get(func, *x)?;
                affine.lanes.insert(*axis as usize, 0);
                Some(affine)
            }
            Op::Reshape { x } => {
                let affine = self.get(func, *x)?;
                let lanes = reshaped(&affine.lanes, func.ty(*x).shape(), shape)?;
                Some(Affine { lanes, ..affine })
            }
            Op::Permute { x, order } => {
                let affine = self.get(func, *x)?;
                let lanes = order.iter().map(|axis| affine.lanes[*axis as usize]).collect();
                Some(Affine { lanes, ..affine })
            }
            Op::Convert { x } => self.get(func, *x),
            Op::Flip { x, axis } => {
                // The first element is the one that was last.
                let mut affine = self.get(func, *x)?;
                let (axis, last) = (*axis as usize, i64::try_from(shape[*axis as usize].as_int()? - 1).ok()?);
                affine.constant = affine.constant.wrapping_add(affine.lanes[axis].wrapping_mul(last));
                affine.lanes[axis] = affine.lanes[axis].wrapping_neg();
                Some(affine)
            }
            Op::Unary { op: UnaryOp::Neg, x } => Some(self.get(func, *x)?.scale(-1)),
            Op::Binary { op: BinaryOp::Add, lhs, rhs } => Some(self.get(func, *lhs)?.plus(&self.get(func, *rhs)?)),
            Op::Binary { op: BinaryOp::Sub, lhs, rhs } => Some(self.get(func, *lhs)?.minus(&self.get(func, *rhs)?)),
            Op::Binary { op: BinaryOp::Mul, lhs, rhs } => {
                let (lhs, rhs) = (self.get(func, *lhs)?, self.get(func, *rhs)?);
                match (lhs.as_constant(), rhs.as_constant()) {
                    (_, Some(factor)) => Some(lhs.scale(factor)),
                    (Some(factor), _) => Some(rhs.scale(factor)),
                    _ => None,
                }
            }
            Op::Binary { op: BinaryOp::Shl, lhs, rhs } => {
                let amount = self.get(func, *rhs)?.as_constant().filter(|amount| (0..63).contains(amount))?;
                Some(self.get(func, *lhs)?.scale(1 << amount))
            }
            _ => None,
        }
    }
}

/// The coefficients after a reshape, if there are some: bit by bit of the row-major index, whose contributions must double along each axis
/// that there is now.
fn reshaped(lanes: &[i64], from: &[ConstExpr], to: &[ConstExpr]) -> Option<Vec<i64>> {
    let bits = |extent: &ConstExpr| extent.as_int().filter(|extent| extent.count_ones() == 1).map(i128::trailing_zeros);
    let mut steps = Vec::new();
    for (lane, extent) in lanes.iter().zip(from).rev() {
        steps.extend((0..bits(extent)?).map(|bit| lane.wrapping_shl(bit)));
    }
    let mut steps = steps.into_iter();
    let mut coefficients = Vec::new();
    for extent in to.iter().rev() {
        let steps: Vec<i64> = steps.by_ref().take(bits(extent)? as usize).collect();
        if steps.windows(2).any(|pair| pair[1] != pair[0].wrapping_mul(2)) {
            return None;
        }
        coefficients.push(steps.first().copied().unwrap_or(0));
    }
    coefficients.reverse();
    Some(coefficients)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::parse;

    #[test]
    fn sums_products_and_broadcasts_are_affine() {
        let text = "kernel @k(%x: ptr<f32>, %n: i64) {
            %0 = arange {start = 2, end = 66} : tile<i64, [64]>
            %1 = const {value = 4} : tile<i64, [64]>
            %2 = broadcast %n : tile<i64, [64]>
            %3 = add %2, %0 : tile<i64, [64]>
            %4 = mul %3, %1 : tile<i64, [64]>
            %5 = sub %4, %2 : tile<i64, [64]>
            %6 = mul %2, %2 : tile<i64, [64]>
            %7 = load %x, %5 : tile<f32, [64]>
            %8 = load %x, %6 : tile<f32, [64]>
            return
        }";
        let func = parse(text).unwrap();
        let n = func.params[1].value;
        let offsets: Vec<Value> = func
            .all_insts()
            .into_iter()
            .filter_map(|inst| if let Op::Load { offset, .. } = func.inst(inst).op { Some(offset) } else { None })
            .collect();
        let mut facts = AffineFacts::new();
        let affine = facts.get(&func, offsets[0]).unwrap();
        assert_eq!(affine, Affine { uniform: vec![(n, 3)], constant: 8, lanes: vec![4] });
        assert_eq!(affine.lane_maximum(&[64]), Some(252));
        assert_eq!(facts.get(&func, offsets[1]), None);
    }

    #[test]
    fn a_step_is_known_where_the_stride_of_another_axis_is_not() {
        let text = "kernel @k(%x: ptr<f32>, %stride: i64) {
            %0 = arange {start = 0, end = 8} : tile<i64, [8]>
            %1 = broadcast %stride : tile<i64, [8]>
            %2 = mul %0, %1 : tile<i64, [8]>
            %3 = expand_dims %2 {axis = 1} : tile<i64, [8, 1]>
            %4 = expand_dims %0 {axis = 0} : tile<i64, [1, 8]>
            %5 = broadcast %3 : tile<i64, [8, 8]>
            %6 = broadcast %4 : tile<i64, [8, 8]>
            %7 = add %5, %6 : tile<i64, [8, 8]>
            %8 = permute %7 {order = [1, 0]} : tile<i64, [8, 8]>
            %9 = load %x, %8 : tile<f32, [8, 8]>
            return
        }";
        let func = parse(text).unwrap();
        let find = |inst| if let Op::Load { offset, .. } = func.inst(inst).op { Some(offset) } else { None };
        let offset = func.all_insts().into_iter().find_map(find).unwrap();
        let mut facts = AffineFacts::new();
        assert_eq!(facts.get(&func, offset), None);
        assert_eq!([0, 1].map(|axis| facts.step(&func, offset, axis)), [Some(1), None]);
    }

    #[test]
    fn a_reshape_is_affine_where_its_axes_are() {
        let shape = |extents: &[i128]| extents.iter().map(|extent| ConstExpr::Int(*extent)).collect::<Vec<_>>();
        let after = |lanes: &[i64], from: &[i128], to: &[i128]| reshaped(lanes, &shape(from), &shape(to));
        assert_eq!(after(&[3], &[64], &[4, 16]), Some(vec![48, 3]));
        assert_eq!(after(&[48, 3], &[4, 16], &[64]), Some(vec![3]));
        assert_eq!(after(&[100, 1], &[4, 16], &[64]), None);
        assert_eq!(after(&[100, 1], &[4, 16], &[4, 1, 4, 4]), Some(vec![100, 0, 4, 1]));
        assert_eq!(after(&[100, 7], &[4, 1], &[2, 2]), Some(vec![200, 100]));
    }
}
