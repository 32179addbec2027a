//! Blocks: the loads and stores of a rectangle of a tensor, in the form that tensor copies take.
//!
//! ```text
//! load a, (batch + row * k + column) {mask = row < m and column < k}         row = 128 * %pid + 0 .. 128, column = %i + 0 .. 64
//!
//! axis          corner         extent    stride
//! rows          128 * %pid     %m        %k
//! columns       %i             %k        1
//! ```
//!
//! The mask says where the tensor ends along an axis: elements behind the extent read as 0. Of `start + position < limit`, the part of `limit - start` that differs between
//! programs and iterations is the corner, and the rest is the extent. Along an axis without a mask, the extent is the end of the last block of
//! all programs and iterations, so that no element is left out.
//!
//! The index of the load is the sum of corners times strides. What is left of it is an offset that is the same in all programs, and a further axis along which a block has one
//! element, such as the number of a matrix in a batch.

#[cfg(test)]
mod tests;

use std::fmt;

use crate::analysis::affine::{Affine, AffineFacts};
use crate::analysis::loops::{self, Loop, carried_step};
use crate::analysis::masks::{Condition, conjuncts};
use crate::analysis::polynomial::{Polynomial, Product};
use crate::dtype::Dtype;
use crate::ir::{BinaryOp, Builder, Cache, CompareOp, ConstExpr, Def, Function, Inst, Op, Type, Value, computation};
use rustc_hash::FxHashMap;

/// The bits of a number of the launch that is bounded by a test.
const MOST_BITS: u32 = 31;
/// The bits of a number of programs along the second and the third axis of a grid.
const SHORT_AXIS_BITS: u32 = 16;
/// The greatest extent and stride of a block. The index of an element is clamped to it, and so it fits 31 bits together with the extent of a block.
pub const MOST_EXTENT: i128 = (1 << 31) - (1 << 16);
/// The bits of a sum or product that does not overflow.
const NO_OVERFLOW: u32 = 63;
/// The most scalars of an index that loops count.
const MOST_COUNTED: usize = 8;
/// An expression of more ops inside of each other has no known bits.
const MOST_DEPTH: u32 = 24;

/// A rectangle of a tensor.
#[derive(Clone, PartialEq, Debug)]
pub struct Block {
    /// The tensor, a parameter of the kernel.
    pub base: Value,
    /// Each axis of the tile, and then the axis along which the block has one element, if there is one.
    pub axes: Vec<Axis>,
    /// The index from which corners count. It is the same in all programs.
    pub offset: Polynomial,
    /// The axis along which neighbours are adjacent in memory.
    pub contiguous: usize,
    /// The scalars that must not be negative, nor exceed [`MOST_EXTENT`], for no number to overflow. The host computes them, of all programs.
    pub bounded: Vec<Value>,
}

/// An axis of a block.
#[derive(Clone, PartialEq, Debug)]
pub struct Axis {
    /// The index of the first element along the axis.
    pub corner: Polynomial,
    /// The end of the tensor along the axis.
    pub extent: Extent,
    /// The distance of neighbours, in elements, which is the same for all programs.
    pub stride: Polynomial,
}

/// The end of a tensor along an axis, which is the same for all programs.
#[derive(Clone, PartialEq, Debug)]
pub enum Extent {
    /// The limit of the mask.
    Limit(Polynomial),
    /// The end of the last of all blocks, each of which has so many elements. The corner grows with the ids of programs and the indices of loops in it.
    LastBlock(usize),
}

/// Why a load reads no block that a tensor copy can read.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Obstacle {
    /// The tensor is one that the kernel may write, or no parameter.
    Tensor,
    /// The tile has another rank than 2.
    Rank,
    /// Masked elements have another value than 0.
    Other,
    /// The load bypasses caches.
    Cache,
    /// The index is no sum of positions times strides.
    Index,
    /// No axis has neighbours in memory, or both do.
    Neighbours,
    /// A stride or an end differs between programs.
    Launch,
    /// The mask has another part than `position < end` for each axis.
    Mask,
    /// An index may be negative, or too large.
    Range,
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Obstacle::Tensor => "the kernel may write the tensor, or computes the pointer",
            Obstacle::Rank => "the tile has other than two axes",
            Obstacle::Other => "elements that the mask excludes are not 0",
            Obstacle::Cache => "the load names a cache operator",
            Obstacle::Index => "the index is no sum of positions times strides",
            Obstacle::Neighbours => "no axis, or more than one, has neighbours in memory",
            Obstacle::Launch => "a stride, or the end of an axis, is not the same in all programs",
            Obstacle::Mask => "the mask is no conjunction of `position < end` for each axis",
            Obstacle::Range => "an index may be negative",
        })
    }
}

impl Obstacle {
    /// How a user mends it.
    pub fn help(self) -> &'static str {
        match self {
            Obstacle::Tensor => "take a `Ptr` in place of a `PtrMut`, or a `View` in place of a `ViewMut`",
            Obstacle::Rank => "access a tile with two axes",
            Obstacle::Other => "leave `other` out, or let it be 0",
            Obstacle::Cache => "leave the cache operator out",
            Obstacle::Index => "write `base + row * stride + column`, with rows and columns from `arange`, or use a `View`",
            Obstacle::Neighbours => "let the stride of one axis be 1, in the kernel or by the argument",
            Obstacle::Launch => "let strides and ends be numbers of the launch",
            Obstacle::Mask => "mask each axis with `index < extent`",
            Obstacle::Range => "compute the index by sums and products of numbers that are not negative",
        }
    }
}

/// The blocks of a kernel's loads.
pub struct Blocks<'a> {
    func: &'a Function,
    facts: AffineFacts,
    loops: FxHashMap<Value, Loop>,
}

impl<'a> Blocks<'a> {
    /// The analysis of a kernel.
    pub fn of(func: &'a Function) -> Blocks<'a> {
        Blocks { func, facts: AffineFacts::new(), loops: loops::by_index(func) }
    }

    /// The block that a load reads, or that a store writes.
    ///
    /// # Errors
    /// Why it is none.
    pub fn block(&mut self, access: Inst) -> Result<Block, Obstacle> {
        let func = self.func;
        let (base, offset, mask, other, is_plain, is_mutable) = match func.inst(access).op {
            Op::Load { base, offset, mask, other, cache, volatile, .. } => {
                (base, offset, mask, other, cache == Cache::Default && !volatile, false)
            }
            Op::Store { base, offset, mask, cache, .. } => (base, offset, mask, None, cache == Cache::Default, true),
            _ => return Err(Obstacle::Tensor),
        };
        if func.param_index(base).is_none() || !matches!(func.ty(base), Type::Pointer { mutable, .. } if *mutable == is_mutable) {
            return Err(Obstacle::Tensor);
        }
        let &[rows, columns] = &func.ty(offset).extents()[..] else { return Err(Obstacle::Rank) };
        let extents = [rows, columns];
        if !is_plain {
            return Err(Obstacle::Cache);
        }
        if other.is_some_and(|other| !func.has_zero_bits(other)) {
            return Err(Obstacle::Other);
        }
        let index = self.facts.get(func, offset).ok_or(Obstacle::Index)?;
        let strides = [0, 1].map(|axis| index.strides[axis].clone());
        let contiguous = match [0, 1].map(|axis: usize| strides[axis].is(1)) {
            [true, false] => 0,
            [false, true] => 1,
            _ => return Err(Obstacle::Neighbours),
        };
        if !strides.iter().all(|stride| self.is_known_at_launch(stride)) {
            return Err(Obstacle::Launch);
        }
        let mut bounded = Vec::new();
        let limits = self.limits(mask, &extents, &mut bounded)?;
        let start = self.counted(&index.start).ok_or(Obstacle::Index)?;
        let Corners { of_axes, offset, further } = self.corners(&start, &strides, contiguous, &limits).ok_or(Obstacle::Index)?;
        let mut axes = Vec::new();
        let known = of_axes.into_iter().zip(strides).zip(limits).zip(extents);
        let all = known.map(|(((corner, stride), limit), extent)| (corner, stride, limit.map(|(_, limit)| limit), extent));
        for (corner, stride, limit, extent) in all.chain(further.map(|(corner, stride)| (corner, stride, None, 1))) {
            self.bits_of(&corner, &mut bounded).ok_or(Obstacle::Range)?;
            let extent = match limit {
                Some(limit) => Extent::Limit(limit),
                None if self.has_last(&corner) => Extent::LastBlock(extent),
                None => return Err(Obstacle::Launch),
            };
            axes.push(Axis { corner, extent, stride });
        }
        bounded.sort_unstable();
        bounded.dedup();
        Ok(Block { base, axes, offset, contiguous, bounded })
    }

    /// For each axis that the mask compares: the corner, and the end of the tensor. The mask of a view also tests that no index is negative, which holds for indices of
    /// known bits.
    fn limits(
        &mut self,
        mask: Option<Value>,
        extents: &[usize; 2],
        bounded: &mut Vec<Value>,
    ) -> Result<[Option<(Polynomial, Polynomial)>; 2], Obstacle> {
        let mut limits = [None, None];
        let Some(mask) = mask else { return Ok(limits) };
        for conjunct in conjuncts(self.func, &mut self.facts, mask) {
            if let Condition::Uniform(flag) = conjunct.condition
                && self.func.splat(flag).is_some_and(|value| value.as_int() == Some(1) || *value == ConstExpr::Bool(true))
            {
                continue;
            }
            let (comparison, axis) = conjunct.along_axis(extents).ok_or(Obstacle::Mask)?;
            if comparison.op == CompareOp::Ge && comparison.limit.is(0) {
                let start = self.counted(&comparison.index.start).ok_or(Obstacle::Mask)?;
                self.bits_of(&start, bounded).ok_or(Obstacle::Range)?;
                continue;
            }
            let beyond = match comparison.op {
                CompareOp::Lt => 0,
                CompareOp::Le => 1,
                _ => return Err(Obstacle::Mask),
            };
            let distance = comparison.limit.plus(&Polynomial::constant(beyond)).minus(&comparison.index.start);
            let distance = self.counted(&distance).ok_or(Obstacle::Mask)?;
            let (extent, rest) = self.parts(&distance);
            let found = (rest.scaled(-1), extent);
            match &limits[axis] {
                Some(known) if *known != found => return Err(Obstacle::Mask),
                _ => limits[axis] = Some(found),
            }
        }
        Ok(limits)
    }

    /// The same number without scalars that loops count: each is its first value and a step for each iteration.
    fn counted(&mut self, number: &Polynomial) -> Option<Polynomial> {
        let mut number = self.expanded(number, MOST_DEPTH)?;
        for _ in 0..MOST_COUNTED {
            let found = number.scalars().find_map(|scalar| match self.func.def(scalar) {
                Def::Param(region, position) if position > 0 => {
                    self.loops.values().find(|around| around.body == region).map(|around| (scalar, around.inst, position - 1))
                }
                _ => None,
            });
            let Some((scalar, inst, position)) = found else { return Some(number) };
            let value = self.value_counted(inst, position)?;
            let coefficient = number.coefficient(scalar)?;
            let own = coefficient.times(&Polynomial::scalar(scalar))?;
            number = self.expanded(&number.minus(&own).plus(&coefficient.times(&value)?), MOST_DEPTH)?;
        }
        None
    }

    /// The same number in terms of the operands of sums and products that differ between programs.
    fn expanded(&self, number: &Polynomial, depth: u32) -> Option<Polynomial> {
        let depth = depth.checked_sub(1)?;
        let of = |scalar: Value| -> Option<Polynomial> {
            let whole = || Some(Polynomial::scalar(scalar));
            let part = |value: Value| match loops::constant(self.func, value) {
                Some(constant) => Some(Polynomial::constant(constant)),
                None => self.expanded(&Polynomial::scalar(value), depth),
            };
            if self.is_uniform(scalar) {
                return whole();
            }
            match self.func.def_op(scalar) {
                Some(&Op::Binary { op: BinaryOp::Add, lhs, rhs }) => Some(part(lhs)?.plus(&part(rhs)?)),
                Some(&Op::Binary { op: BinaryOp::Sub, lhs, rhs }) => Some(part(lhs)?.minus(&part(rhs)?)),
                Some(&Op::Binary { op: BinaryOp::Mul, lhs, rhs }) => part(lhs)?.times(&part(rhs)?),
                _ => whole(),
            }
        };
        let mut sum = Polynomial::constant(number.constant);
        for (factors, coefficient) in &number.terms {
            let mut product = Polynomial::constant(*coefficient);
            for factor in factors.iter() {
                product = product.times(&of(*factor)?)?;
            }
            sum = sum.plus(&product);
        }
        sum.is_short().then_some(sum)
    }

    /// A carried scalar in terms of the index of its loop.
    fn value_counted(&mut self, inst: Inst, position: usize) -> Option<Polynomial> {
        let func = self.func;
        let around = Loop::of(func, inst)?;
        let Op::For { init, .. } = &func.inst(inst).op else { return None };
        let first = self.facts.get(func, init[position])?.start.clone();
        let step = carried_step(func, &mut self.facts, around.body, position).filter(Affine::is_uniform)?.start;
        if !self.is_known_at_launch(&step) || loops::constant(func, around.lower) != Some(0) {
            return None;
        }
        // The step of the loop divides that of the scalar.
        let (each, rest) = divided(&step, &Polynomial::constant(around.constant_step(func)?));
        if rest.is(0) { Some(first.plus(&each.times(&Polynomial::scalar(around.index(func)))?)) } else { None }
    }

    /// The part of a number that is the same in all programs, and the rest.
    fn parts(&self, number: &Polynomial) -> (Polynomial, Polynomial) {
        let (known, rest): (Vec<_>, Vec<_>) =
            number.terms.iter().cloned().partition(|(factors, _)| factors.iter().all(|factor| self.is_uniform(*factor)));
        (Polynomial { terms: known, constant: number.constant }, Polynomial { terms: rest, constant: 0 })
    }

    /// The parts of the index of a block's first element, by axis. Those of masked axes are known; what is left belongs to the other ones, or to none.
    fn corners(
        &self,
        start: &Polynomial,
        strides: &[Polynomial; 2],
        contiguous: usize,
        limits: &[Option<(Polynomial, Polynomial)>; 2],
    ) -> Option<Corners> {
        let mut left = start.clone();
        let mut corners = [const { None }; 2];
        for axis in [0, 1] {
            if let Some((corner, _)) = &limits[axis] {
                left = left.minus(&corner.times(&strides[axis])?);
                corners[axis] = Some(corner.clone());
            }
        }
        let across = 1 - contiguous;
        if corners[across].is_none() {
            let (corner, rest) = divided(&left, &strides[across]);
            (corners[across], left) = (Some(corner), rest);
        }
        let (offset, left) = self.parts(&left);
        let (near, far): (Vec<_>, Vec<_>) =
            left.terms.iter().cloned().partition(|(factors, _)| factors.iter().all(|factor| !self.is_uniform(*factor)));
        let (near, far) = (Polynomial { terms: near, constant: 0 }, Polynomial { terms: far, constant: 0 });
        let further = match corners[contiguous] {
            None => {
                corners[contiguous] = Some(near);
                far
            }
            Some(_) => near.plus(&far),
        };
        let [Some(rows), Some(columns)] = corners else { return None };
        let further = if further.is(0) { None } else { Some(self.factored(&further)?) };
        Some(Corners { of_axes: [rows, columns], offset, further })
    }

    /// A number as a product: of one that differs between programs, and of one that does not.
    fn factored(&self, number: &Polynomial) -> Option<(Polynomial, Polynomial)> {
        let mut stride: Option<(Product, i64)> = None;
        let mut corner = Polynomial::default();
        let divisor = number.terms.iter().map(|(_, coefficient)| *coefficient).reduce(greatest_common_divisor)?;
        for (factors, coefficient) in &number.terms {
            let (known, own): (Vec<Value>, Vec<Value>) = factors.iter().copied().partition(|factor| self.is_uniform(*factor));
            let found = (known.into_iter().collect::<Product>(), divisor);
            if stride.get_or_insert_with(|| found.clone()) != &found {
                return None;
            }
            corner = corner.plus(&Polynomial { terms: vec![(own.into_iter().collect(), coefficient / divisor)], constant: 0 });
        }
        let (factors, divisor) = stride?;
        let stride =
            if factors.is_empty() { Polynomial::constant(divisor) } else { Polynomial { terms: vec![(factors, divisor)], constant: 0 } };
        Some((corner, stride))
    }

    fn is_uniform(&self, scalar: Value) -> bool {
        computation(self.func, scalar, &Op::is_uniform).is_some()
    }

    fn is_known_at_launch(&self, number: &Polynomial) -> bool {
        number.scalars().all(|scalar| self.is_uniform(scalar))
    }

    /// The bits of a number that is not negative. `bounded` gets the scalars of the launch that must have at most [`MOST_BITS`] of them.
    fn bits_of(&self, number: &Polynomial, bounded: &mut Vec<Value>) -> Option<u32> {
        let mut terms = Vec::new();
        for (factors, coefficient) in &number.terms {
            // Each factor is less than a power of two, and the coefficient is at most one.
            let mut bits = bits_of_constant(coefficient.checked_sub(1)?)?;
            for factor in factors.iter() {
                bits += self.bits(*factor, bounded, MOST_DEPTH)?;
            }
            terms.push(bits);
        }
        if number.constant != 0 || terms.is_empty() {
            terms.push(bits_of_constant(number.constant)?);
        }
        // Two numbers have a sum of one more bit, four of them one of two, and so on.
        let bits = terms.iter().max().copied().unwrap_or(0) + terms.len().next_power_of_two().trailing_zeros();
        (bits <= NO_OVERFLOW).then_some(bits)
    }

    /// As [`Blocks::bits_of`], of a scalar. If no bits follow from its op, and the host can compute it for all programs, the host tests it.
    fn bits(&self, value: Value, bounded: &mut Vec<Value>, depth: u32) -> Option<u32> {
        let known = bounded.len();
        if let Some(bits) = self.bits_by_op(value, bounded, depth) {
            return Some(bits);
        }
        bounded.truncate(known);
        computation(self.func, value, &Op::is_known_at_launch)?;
        bounded.push(value);
        Some(MOST_BITS)
    }

    fn bits_by_op(&self, value: Value, bounded: &mut Vec<Value>, depth: u32) -> Option<u32> {
        let func = self.func;
        let depth = depth.checked_sub(1)?;
        let inst = match func.def(value) {
            Def::Param(..) if func.param_index(value).is_some() => return None,
            // An index lies between both ends of the loop.
            Def::Param(..) => {
                let around = self.loops.get(&value)?;
                self.bits(around.lower, bounded, depth)?;
                return self.bits(around.upper, bounded, depth);
            }
            Def::Result(inst, _) => inst,
        };
        let mut of = |value: Value| self.bits(value, bounded, depth);
        match &func.inst(inst).op {
            Op::Const { value } => bits_of_constant(i64::try_from(value.as_int()?).ok()?),
            Op::ProgramId { axis } | Op::NumPrograms { axis } => Some(if *axis == 0 { MOST_BITS } else { SHORT_AXIS_BITS }),
            Op::Cast { x } if func.ty(*x).dtype() == Dtype::Bool => Some(1),
            Op::Cast { x } if func.ty(*x).dtype().is_int() => of(*x),
            Op::Binary { op: BinaryOp::Sub, .. } => None,
            // The sign is that of the dividend.
            Op::Binary { op: BinaryOp::Rem, lhs, .. } => of(*lhs),
            Op::Binary { op, lhs, rhs } => {
                let (lhs, rhs) = (of(*lhs)?, of(*rhs)?);
                let bits = match op {
                    BinaryOp::Add => lhs.max(rhs) + 1,
                    BinaryOp::Mul => lhs + rhs,
                    BinaryOp::Max | BinaryOp::Or | BinaryOp::Xor => lhs.max(rhs),
                    BinaryOp::Min | BinaryOp::And => lhs.min(rhs),
                    // The dividend, or less.
                    BinaryOp::Div | BinaryOp::Shr => lhs,
                    _ => return None,
                };
                (bits <= NO_OVERFLOW).then_some(bits)
            }
            _ => None,
        }
    }

    /// Is the greatest value of an index over all programs and iterations known at launch? It is a sum of products without a sign, so it grows with each of its scalars.
    fn has_last(&self, corner: &Polynomial) -> bool {
        corner.scalars().all(|scalar| {
            self.is_uniform(scalar)
                || matches!(self.func.def_op(scalar), Some(Op::ProgramId { .. }))
                || self
                    .loops
                    .get(&scalar)
                    .is_some_and(|around| [around.lower, around.upper, around.step].iter().all(|bound| self.is_uniform(*bound)))
        })
    }

    /// Appends the end of the last of all blocks along an axis.
    pub fn last_block(loops: &FxHashMap<Value, Loop>, b: &mut Builder<'_>, corner: &Polynomial, extent: usize) -> Value {
        let mut last: FxHashMap<Value, Value> = FxHashMap::default();
        for scalar in corner.scalars() {
            if let Some(&Op::ProgramId { axis }) = b.func.def_op(scalar) {
                let (programs, one) = (b.op(Op::NumPrograms { axis }, &[]), b.index(1));
                last.insert(scalar, b.binary(BinaryOp::Sub, programs, one));
            } else if let Some(around) = loops.get(&scalar) {
                let span = around.span(b);
                let end = around.iterations_end(b, span, 1);
                let index = b.binary(BinaryOp::Sub, end, around.step);
                last.insert(scalar, b.binary(BinaryOp::Max, index, around.lower));
            }
        }
        let corner = corner.map(&|scalar| last.get(&scalar).copied().unwrap_or(scalar)).value(b);
        let extent = b.index(extent as i128);
        b.binary(BinaryOp::Add, corner, extent)
    }
}

fn bits_of_constant(constant: i64) -> Option<u32> {
    (constant >= 0).then(|| 64 - constant.leading_zeros())
}

/// The index of a block's first element, in parts.
struct Corners {
    of_axes: [Polynomial; 2],
    offset: Polynomial,
    /// The corner and the stride of a further axis.
    further: Option<(Polynomial, Polynomial)>,
}

fn greatest_common_divisor(one: i64, other: i64) -> i64 {
    let (mut one, mut other) = (one, other);
    while other != 0 {
        (one, other) = (other, one % other);
    }
    one
}

/// The quotient and the rest of a polynomial, term by term. The divisor has one term.
fn divided(number: &Polynomial, divisor: &Polynomial) -> (Polynomial, Polynomial) {
    let one = (Product::default(), divisor.constant);
    let (factors, coefficient) = match &divisor.terms[..] {
        [] if divisor.constant != 0 => &one,
        [term] if divisor.constant == 0 => term,
        _ => return (Polynomial::default(), number.clone()),
    };
    let (mut quotient, mut rest) = (Polynomial::default(), Polynomial::constant(number.constant));
    if factors.is_empty() && number.constant % coefficient == 0 {
        (quotient.constant, rest.constant) = (number.constant / coefficient, 0);
    }
    for (product, number) in &number.terms {
        let mut left: Vec<Value> = product.iter().copied().collect();
        let is_divisible = number % coefficient == 0
            && factors.iter().all(|factor| {
                let found = left.iter().position(|own| own == factor);
                found.map(|at| left.remove(at)).is_some()
            });
        let (part, term) = if is_divisible {
            (&mut quotient, (left.into_iter().collect::<Product>(), number / coefficient))
        } else {
            (&mut rest, (product.clone(), *number))
        };
        *part = match term {
            (factors, number) if factors.is_empty() => part.plus(&Polynomial::constant(number)),
            term => part.plus(&Polynomial { terms: vec![term], constant: 0 }),
        };
    }
    (quotient, rest)
}
