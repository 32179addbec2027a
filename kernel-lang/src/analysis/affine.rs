//! Affine indices: an index as `start + stride_0 * i_0 + stride_1 * i_1 + ..`, modulo 2^64.
//!
//! `start` is the same for every element of a tile. `i_k` is the element's position along axis k. `stride_k`, in [`Affine::strides`], is the
//! difference between the indices of neighbours along that axis. The start and the strides are polynomials of `i64` scalars. From this form
//! follow coalescing and vector widths (a stride of 1), immediate offsets, and proofs that a whole tile is in bounds.
//!
//! ```text
//! %3 = arange {start = 2, end = 66}          2 + 1 * i_0
//! %4 = broadcast %base                       %base
//! %5 = add %4, %3                            %base + 2 + 1 * i_0
//! %6 = mul %5, (broadcast %stride)           %base * %stride + 2 * %stride + %stride * i_0
//! ```

use std::rc::Rc;

use rustc_hash::FxHashMap;

use crate::analysis::polynomial::Polynomial;
use crate::dtype::Dtype;
use crate::ir::{BinaryOp, Builder, ConstExpr, Elem, Function, Op, SideTable, Type, UnaryOp, Value, axes, postorder};

/// An index in affine form. Indices with equal parts are equal, whatever values the scalars have.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Affine {
    /// The index of the first element.
    pub start: Polynomial,
    /// The stride along each axis of the tile.
    pub strides: Vec<Polynomial>,
}

impl Affine {
    /// An index that is the same for every element of a tile of rank `rank`.
    pub fn uniform(start: Polynomial, rank: usize) -> Affine {
        Affine { start, strides: vec![Polynomial::default(); rank] }
    }

    /// An index that starts at 0 and has these strides.
    pub fn steps(steps: &[i64]) -> Affine {
        Affine { start: Polynomial::default(), strides: steps.iter().copied().map(Polynomial::constant).collect() }
    }

    /// Is the index the same for every element?
    pub fn is_uniform(&self) -> bool {
        self.strides.iter().all(|stride| stride.is(0))
    }

    /// The value of the index, if it is the same known constant for every element.
    pub fn as_constant(&self) -> Option<i64> {
        self.start.as_constant().filter(|_| self.is_uniform())
    }

    /// The largest sum of the stride terms in a tile with these extents; the smallest is then 0. `None` unless all strides are known, none
    /// is negative and the sum fits 31 bits.
    pub fn maximum_offset(&self, extents: &[usize]) -> Option<i64> {
        let mut sum = 0i64;
        for (stride, extent) in self.strides.iter().zip(extents) {
            let stride = stride.as_constant().filter(|stride| *stride >= 0)?;
            let term = i64::try_from(extent.saturating_sub(1)).ok()?.checked_mul(stride)?;
            sum = sum.checked_add(term)?;
        }
        (sum < 1 << 31).then_some(sum)
    }

    /// The scalars of the start and of the strides.
    pub fn scalars(&self) -> impl Iterator<Item = Value> {
        self.start.scalars().chain(self.strides.iter().flat_map(Polynomial::scalars))
    }

    /// Does no element of this index equal any element of another one? The function finds indices that differ modulo a power of two, up to
    /// 64, of which all strides are multiples, such as those of the even and the odd elements of a tensor.
    pub fn is_apart_from(&self, other: &Affine) -> bool {
        let difference = other.start.minus(&self.start);
        let rest = Polynomial { constant: 0, ..difference.clone() };
        let is_apart = |divisor: i64| {
            let mut multiples = self.strides.iter().chain(&other.strides).chain([&rest]);
            difference.constant % divisor != 0 && multiples.all(|part| part.is_multiple_of(divisor))
        };
        (1..=6).any(|bits| is_apart(1 << bits))
    }

    fn is_short(&self) -> bool {
        self.start.is_short() && self.strides.iter().all(Polynomial::is_short)
    }

    /// Appends ops that compute `start`, the part that is the same for every element, as a scalar.
    pub fn uniform_value(&self, b: &mut Builder<'_>) -> Value {
        self.start.value(b)
    }

    /// Appends ops that compute the sum of the stride terms, as a tile of that shape.
    pub fn strides_value(&self, b: &mut Builder<'_>, shape: &[ConstExpr]) -> Value {
        let mut sum: Option<Value> = None;
        for (axis, stride) in self.strides.iter().enumerate().filter(|(_, stride)| !stride.is(0)) {
            let mut term = positions(b, shape, axis);
            if !stride.is(1) {
                let step = stride.value(b);
                let step = b.broadcast(step, shape);
                term = b.binary(BinaryOp::Mul, term, step);
            }
            sum = Some(sum.map_or(term, |sum| b.binary(BinaryOp::Add, sum, term)));
        }
        sum.unwrap_or_else(|| b.constant(ConstExpr::Int(0), Type::tile(Dtype::I64, shape.to_vec())))
    }

    /// The sum of two indices of equal rank.
    #[must_use]
    pub fn plus(&self, other: &Affine) -> Affine {
        let strides = self.strides.iter().zip(&other.strides).map(|(own, other)| own.plus(other)).collect();
        Affine { start: self.start.plus(&other.start), strides }
    }

    /// The difference of two indices of equal rank.
    #[must_use]
    pub fn minus(&self, other: &Affine) -> Affine {
        self.plus(&other.scaled(-1))
    }

    fn scaled(&self, factor: i64) -> Affine {
        Affine { start: self.start.scaled(factor), strides: self.strides.iter().map(|stride| stride.scaled(factor)).collect() }
    }

    /// The product with a factor that is the same for every element; `None` if a polynomial becomes too long.
    fn times(&self, factor: &Polynomial) -> Option<Affine> {
        let strides = self.strides.iter().map(|stride| stride.times(factor)).collect::<Option<_>>()?;
        Some(Affine { start: self.start.times(factor)?, strides })
    }
}

/// Appends ops that compute each element's position along an axis, as a tile of that shape.
pub fn positions(b: &mut Builder<'_>, shape: &[ConstExpr], axis: usize) -> Value {
    let mut positions = b.op(Op::Arange { start: ConstExpr::Int(0), end: shape[axis].clone() }, &[]);
    for other in (0..shape.len()).filter(|other| *other != axis) {
        positions = b.expand_dims(positions, other as u32);
    }
    b.broadcast(positions, shape)
}

/// The affine forms of the indices of one kernel, computed on demand.
///
/// Each form is computed once, from the forms of the operands. Forms are short: a tile whose sum needs more terms than
/// [`Polynomial::MOST_TERMS`] has no form, and such a scalar becomes a single term. All forms together thus take time linear in the size of
/// the kernel.
#[derive(Debug, Default)]
pub struct AffineFacts {
    known: SideTable<Value, Option<Option<Rc<Affine>>>>,
    /// By index and axis: the strides that were requested of indices without an affine form.
    steps: FxHashMap<(Value, usize), Option<i64>>,
    /// Are products of scalars expanded into polynomials? Otherwise such a product is a scalar of its own.
    products: bool,
    /// Is a tile without an affine form a term of its own, like a scalar?
    tiles: bool,
}

impl AffineFacts {
    /// An empty table.
    pub fn new() -> AffineFacts {
        AffineFacts::default()
    }

    /// Like [`AffineFacts::new`], but products of scalars are polynomials, too. This shows how an index changes with the index of a loop.
    pub fn through_products() -> AffineFacts {
        AffineFacts { products: true, ..AffineFacts::default() }
    }

    /// Like [`AffineFacts::through_products`], but a tile without an affine form is a term of the start, which then differs between elements.
    /// This shows of what an index consists, such as `%row * %n + %column` of tiles that divisions gave. Nothing can be computed from it.
    pub fn over_tiles() -> AffineFacts {
        AffineFacts { tiles: true, ..AffineFacts::through_products() }
    }

    /// The affine form of an `i64` scalar or tile. Every scalar has a form: its own value, if there is no better one.
    pub fn get(&mut self, func: &Function, value: Value) -> Option<Rc<Affine>> {
        self.compute(func, value);
        self.known(value).cloned()
    }

    /// Forgets the form of a value whose op has changed, or of a value that depends on such a value.
    pub fn forget(&mut self, value: Value) {
        self.known[value] = None;
        self.steps.clear();
    }

    /// The form of a value that has been visited.
    fn known(&self, value: Value) -> Option<&Rc<Affine>> {
        self.known[value].as_ref()?.as_ref()
    }

    /// The stride of an index along an axis, if it is a known number. Some indices without an affine form have a stride, such as
    /// `rows * stride + columns` with rows from memory.
    pub fn step(&mut self, func: &Function, value: Value, axis: usize) -> Option<i64> {
        let enter = |facts: &mut AffineFacts, (value, axis): (Value, usize), before: &mut Vec<(Value, usize)>| {
            facts.compute(func, value);
            let is_new = facts.known(value).is_none() && !facts.steps.contains_key(&(value, axis));
            if is_new && func.ty(value).shape().get(axis).is_some_and(|extent| extent.as_int() != Some(1)) {
                step_operands(func, value, axis, before);
            }
            is_new
        };
        let leave = |facts: &mut AffineFacts, (value, axis): (Value, usize)| {
            let step = facts.step_of(func, value, axis);
            facts.steps.insert((value, axis), step);
        };
        postorder(self, (value, axis), enter, leave);
        self.known_step((value, axis))
    }

    /// The stride of an index that has been visited.
    fn known_step(&self, (value, axis): (Value, usize)) -> Option<i64> {
        match self.known(value) {
            Some(affine) => affine.strides[axis].as_constant(),
            None => self.steps.get(&(value, axis)).copied().flatten(),
        }
    }

    /// The stride of an index without an affine form, from the strides of its operands.
    fn step_of(&self, func: &Function, value: Value, axis: usize) -> Option<i64> {
        if func.ty(value).shape().get(axis)?.as_int() == Some(1) {
            return Some(0);
        }
        let mut operands = Vec::new();
        step_operands(func, value, axis, &mut operands);
        let mut steps = operands.into_iter().map(|operand| self.known_step(operand));
        match func.def_op(value)? {
            Op::Broadcast { x } if func.ty(*x).is_scalar() || func.ty(*x).shape()[axis].as_int() == Some(1) => Some(0),
            Op::Broadcast { .. } | Op::ExpandDims { .. } | Op::Permute { .. } | Op::Convert { .. } => steps.next()?,
            Op::Flip { axis: flipped, .. } => {
                let step = steps.next()??;
                Some(if axis == *flipped as usize { step.wrapping_neg() } else { step })
            }
            Op::Binary { op: BinaryOp::Add, .. } => Some(steps.next()??.wrapping_add(steps.next()??)),
            Op::Binary { op: BinaryOp::Sub, .. } => Some(steps.next()??.wrapping_sub(steps.next()??)),
            // A result of operands that do not change along the axis does not change along it either, whatever the operator is.
            Op::Binary { .. } | Op::Cast { .. } => steps.all(|step| step == Some(0)).then_some(0),
            _ => None,
        }
    }

    /// Computes the form of a value and the forms of all values that it depends on.
    fn compute(&mut self, func: &Function, value: Value) {
        if self.known[value].is_some() || !is_index(func, value) {
            return;
        }
        let enter = |facts: &mut AffineFacts, value: Value, before: &mut Vec<Value>| {
            let is_new = facts.known[value].is_none();
            if is_new && is_index(func, value) {
                affine_operands(func, value, before);
            }
            is_new
        };
        let leave = |facts: &mut AffineFacts, value: Value| {
            let form = facts.form(func, value);
            facts.known[value] = Some(form);
        };
        postorder(self, value, enter, leave);
    }

    /// The form of a value, from the forms of its operands.
    fn form(&self, func: &Function, value: Value) -> Option<Rc<Affine>> {
        if !is_index(func, value) {
            return None;
        }
        let ty = func.ty(value);
        let derived = func.def_op(value).and_then(|op| self.derive(func, op, value)).filter(Affine::is_short);
        let own = || (self.tiles || ty.is_scalar()).then(|| Affine::uniform(Polynomial::scalar(value), ty.shape().len()));
        derived.or_else(own).map(Rc::new)
    }

    fn derive(&self, func: &Function, op: &Op, result: Value) -> Option<Affine> {
        let shape = func.ty(result).shape();
        let rank = shape.len();
        match op {
            Op::Const { value: ConstExpr::Int(value) } => Some(Affine::uniform(Polynomial::constant(i64::try_from(*value).ok()?), rank)),
            Op::Arange { start, .. } => {
                let start = Polynomial::constant(i64::try_from(start.as_int()?).ok()?);
                Some(Affine { start, strides: vec![Polynomial::constant(1)] })
            }
            // An axis of extent 1 has only the position 0, so its stride does not matter.
            Op::Broadcast { x } | Op::ExpandDims { x, .. } | Op::Permute { x, .. } => {
                let affine = self.known(*x)?;
                let strides = axes::of_result(func, op, result, &affine.strides, Polynomial::default())?;
                Some(Affine { start: affine.start.clone(), strides })
            }
            Op::Reshape { x } => {
                let affine = self.known(*x)?;
                Some(Affine { strides: reshaped(&affine.strides, func.ty(*x).shape(), shape)?, start: affine.start.clone() })
            }
            Op::Convert { x } => self.known(*x).map(|affine| (**affine).clone()),
            Op::Flip { x, axis } => {
                // The first element is the former last one.
                let mut affine = (**self.known(*x)?).clone();
                let (axis, last) = (*axis as usize, i64::try_from(shape[*axis as usize].as_int()? - 1).ok()?);
                affine.start = affine.start.plus(&affine.strides[axis].scaled(last));
                affine.strides[axis] = affine.strides[axis].scaled(-1);
                Some(affine)
            }
            Op::Unary { op: UnaryOp::Neg, x } => Some(self.known(*x)?.scaled(-1)),
            Op::Binary { op: BinaryOp::Add, lhs, rhs } => Some(self.known(*lhs)?.plus(self.known(*rhs)?)),
            Op::Binary { op: BinaryOp::Sub, lhs, rhs } => Some(self.known(*lhs)?.minus(self.known(*rhs)?)),
            Op::Binary { op: BinaryOp::Mul, lhs, rhs } => {
                let (lhs, rhs) = (self.known(*lhs)?, self.known(*rhs)?);
                match (lhs.as_constant(), rhs.as_constant()) {
                    (_, Some(factor)) => Some(lhs.scaled(factor)),
                    (Some(factor), _) => Some(rhs.scaled(factor)),
                    // A product of scalars is a scalar of its own, which is computed once.
                    _ if rank == 0 && !self.products => None,
                    _ if rhs.is_uniform() => lhs.times(&rhs.start),
                    _ if lhs.is_uniform() => rhs.times(&lhs.start),
                    _ => None,
                }
            }
            Op::Binary { op: BinaryOp::Shl, lhs, rhs } => {
                let amount = self.known(*rhs)?.as_constant().filter(|amount| (0..63).contains(amount))?;
                Some(self.known(*lhs)?.scaled(1 << amount))
            }
            _ => None,
        }
    }
}

/// Is the value an index, or a number from which indices are computed?
fn is_index(func: &Function, value: Value) -> bool {
    let ty = func.ty(value);
    !ty.is_pointer() && ty.elem() == &Elem::Dtype(Dtype::I64)
}

/// The operands whose forms determine the form of a value.
fn affine_operands(func: &Function, value: Value, out: &mut Vec<Value>) {
    match func.def_op(value) {
        Some(
            Op::Broadcast { x }
            | Op::ExpandDims { x, .. }
            | Op::Reshape { x }
            | Op::Permute { x, .. }
            | Op::Convert { x }
            | Op::Flip { x, .. }
            | Op::Unary { op: UnaryOp::Neg, x },
        ) => out.push(*x),
        Some(Op::Binary { op: BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul | BinaryOp::Shl, lhs, rhs }) => out.extend([*lhs, *rhs]),
        _ => {}
    }
}

/// The operands whose strides determine the stride of an index without an affine form, each with the operand's axis that corresponds to
/// `axis`.
fn step_operands(func: &Function, value: Value, axis: usize, out: &mut Vec<(Value, usize)>) {
    match func.def_op(value) {
        Some(Op::Broadcast { x }) if func.ty(*x).is_scalar() || func.ty(*x).shape()[axis].as_int() == Some(1) => {}
        Some(Op::ExpandDims { x, axis: new }) => out.push((*x, if axis < *new as usize { axis } else { axis - 1 })),
        Some(Op::Permute { x, order }) => out.push((*x, order[axis] as usize)),
        Some(Op::Broadcast { x } | Op::Convert { x } | Op::Flip { x, .. } | Op::Cast { x }) => out.push((*x, axis)),
        Some(Op::Binary { lhs, rhs, .. }) => out.extend([(*lhs, axis), (*rhs, axis)]),
        _ => {}
    }
}

/// The strides after a reshape, if the result is affine. Each bit of the row-major index adds a power of two times a stride. Along each new
/// axis, these contributions must double from bit to bit.
fn reshaped(strides: &[Polynomial], from: &[ConstExpr], to: &[ConstExpr]) -> Option<Vec<Polynomial>> {
    let bits = |extent: &ConstExpr| extent.as_int().filter(|extent| extent.count_ones() == 1).map(i128::trailing_zeros);
    let mut steps = Vec::new();
    for (stride, extent) in strides.iter().zip(from).rev() {
        steps.extend((0..bits(extent)?).map(|bit| stride.scaled(1 << bit)));
    }
    let mut steps = steps.into_iter();
    let mut coefficients = Vec::new();
    for extent in to.iter().rev() {
        let steps: Vec<Polynomial> = steps.by_ref().take(bits(extent)? as usize).collect();
        if steps.windows(2).any(|pair| pair[1] != pair[0].scaled(2)) {
            return None;
        }
        coefficients.push(steps.into_iter().next().unwrap_or_default());
    }
    coefficients.reverse();
    Some(coefficients)
}

#[cfg(test)]
mod tests {
    use rustc_hash::FxHashSet;

    use super::*;
    use crate::ir::{Few, Handle, parse};

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
        assert_eq!(
            *affine,
            Affine { start: Polynomial { terms: vec![(Few::One(n), 3)], constant: 8 }, strides: vec![Polynomial::constant(4)] }
        );
        assert_eq!(affine.maximum_offset(&[64]), Some(252));
        let square = Affine::uniform(Polynomial { terms: vec![(Few::Many(vec![n, n]), 1)], constant: 0 }, 1);
        assert_eq!(facts.get(&func, offsets[1]), Some(Rc::new(square)));
    }

    #[test]
    fn a_stride_may_be_an_argument() {
        let text = "kernel @k(%x: ptr<f32>, %row: i64, %stride: i64) {
            %0 = arange {start = 1, end = 9} : tile<i64, [8]>
            %1 = broadcast %row : tile<i64, [8]>
            %2 = add %1, %0 : tile<i64, [8]>
            %3 = broadcast %stride : tile<i64, [8]>
            %4 = mul %3, %2 : tile<i64, [8]>
            %5 = load %x, %4 : tile<f32, [8]>
            %6 = mul %4, %0 : tile<i64, [8]>
            %7 = load %x, %6 : tile<f32, [8]>
            return
        }";
        let func = parse(text).unwrap();
        let (row, stride) = (func.params[1].value, func.params[2].value);
        let find = |inst| if let Op::Load { offset, .. } = func.inst(inst).op { Some(offset) } else { None };
        let offsets: Vec<Value> = func.all_insts().into_iter().filter_map(find).collect();
        let mut facts = AffineFacts::new();
        let start = Polynomial { terms: vec![(Few::Many(vec![row, stride]), 1), (Few::One(stride), 1)], constant: 0 };
        let affine = Affine { start, strides: vec![Polynomial::scalar(stride)] };
        assert_eq!(facts.get(&func, offsets[0]), Some(Rc::new(affine)));
        assert_eq!(facts.get(&func, offsets[1]), None);
    }

    #[test]
    fn a_step_is_known_where_the_one_of_another_axis_is_not() {
        let text = "kernel @k(%x: ptr<f32>, %rows: tile<i64, [8]>) {
            %0 = arange {start = 0, end = 8} : tile<i64, [8]>
            %2 = mul %rows, %rows : tile<i64, [8]>
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

    /// Against all elements of small tiles whose starts contain an argument.
    #[test]
    fn indices_that_are_apart_have_no_element_in_common() {
        let n = Value::new(0);
        let index = |constant: i64, scale: i64, strides: [i64; 2]| {
            let start = Polynomial::scalar(n).scaled(scale).plus(&Polynomial::constant(constant));
            Affine { start, strides: strides.map(Polynomial::constant).to_vec() }
        };
        let elements = |constant: i64, scale: i64, strides: [i64; 2], n: i64| {
            let all = (0..4).flat_map(move |i| (0..4).map(move |j| constant + scale * n + strides[0] * i + strides[1] * j));
            all.collect::<FxHashSet<i64>>()
        };
        let (strides, mut found) = ([0, 1, 2, 3, 4, 6, 8], 0);
        for [a, b, c] in (0..343).map(|number| [number / 49, number / 7 % 7, number % 7].map(|at| strides[at])) {
            for (constant, scale) in (-4..5).flat_map(|constant| [0, 1, 2, 4].map(|scale| (constant, scale))) {
                let (first, second) = (index(1, 0, [a, b]), index(constant, scale, [b, c]));
                if first.is_apart_from(&second) {
                    found += 1;
                    let meets = |n| !elements(1, 0, [a, b], n).is_disjoint(&elements(constant, scale, [b, c], n));
                    assert!(!(-3..4).any(meets), "{first:?} {second:?}");
                }
            }
        }
        assert!(found > 500, "{found}");
        assert!(index(1, 2, [2, 8]).is_apart_from(&index(4, 6, [4, 2])));
        assert!(!index(1, 1, [2, 8]).is_apart_from(&index(4, 2, [4, 2])));
    }

    #[test]
    fn a_reshape_is_affine_where_its_axes_are() {
        let shape = |extents: &[i128]| extents.iter().map(|extent| ConstExpr::Int(*extent)).collect::<Vec<_>>();
        let after = |strides: &[i64], from: &[i128], to: &[i128]| {
            let strides = reshaped(&Affine::steps(strides).strides, &shape(from), &shape(to))?;
            strides.iter().map(Polynomial::as_constant).collect::<Option<Vec<i64>>>()
        };
        assert_eq!(after(&[3], &[64], &[4, 16]), Some(vec![48, 3]));
        assert_eq!(after(&[48, 3], &[4, 16], &[64]), Some(vec![3]));
        assert_eq!(after(&[100, 1], &[4, 16], &[64]), None);
        assert_eq!(after(&[100, 1], &[4, 16], &[4, 1, 4, 4]), Some(vec![100, 0, 4, 1]));
        assert_eq!(after(&[100, 7], &[4, 1], &[2, 2]), Some(vec![200, 100]));
    }
}
