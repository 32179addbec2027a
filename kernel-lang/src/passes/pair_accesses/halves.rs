//! Halves of indices: an index as a sum, whether each term of it is even, and whether the sum is exact.
//!
//! ```text
//! 2 * %p * 1024 + 2 * i_0                 half of it: %p * 1024 + i_0
//! %row * %n + 2 * i_0, a tile of rows     %row * (%n / 2) + i_0, if %n is even
//! ```
//!
//! Arithmetic is modulo 2^64, where half of a number has no meaning. So each sum must be exact: it is less than 2^62 because program ids and elements of an
//! `arange` are small, and because the condition of the launch bounds each product of scalars that the host knows.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use crate::analysis::affine::{Affine, AffineFacts};
use crate::analysis::bounds;
use crate::analysis::loops::{self, Loop};
use crate::analysis::polynomial::Polynomial;
use crate::ir::{BinaryOp, Builder, CompareOp, ConstExpr, Function, Op, Value, computation};
use crate::launch_value::Copies;
use crate::launch_value::sizes::Sizes;

/// Products of scalars that the host knows are less than this.
const END: i64 = 1 << 28;
/// Grids have fewer programs along each axis, if sums are not exact in all grids.
const PROGRAMS: i64 = 1 << 20;
/// Indices are at most this.
const MOST: u128 = 1 << 62;
/// Sums of more levels are not taken apart.
const MOST_DEPTH: u32 = 16;

/// An index: an affine part, and products of tiles with scalars. Sums with equal parts are equal, whatever values the scalars have.
///
/// [`AffineFacts::over_tiles`] also has tiles as terms, but a tile and its transpose are one term there, and no code can be made from such a form.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Sum {
    affine: Affine,
    tiles: BTreeMap<Value, Polynomial>,
}

/// The sums of a kernel, each computed once.
pub(super) struct Sums {
    facts: AffineFacts,
    known: FxHashMap<Value, Sum>,
}

impl Sums {
    pub(super) fn new() -> Sums {
        Sums { facts: AffineFacts::through_products(), known: FxHashMap::default() }
    }

    /// The sum that is a tile of indices.
    pub(super) fn get(&mut self, func: &Function, index: Value) -> Sum {
        self.at_depth(func, index, 0)
    }

    fn at_depth(&mut self, func: &Function, index: Value, depth: u32) -> Sum {
        if let Some(sum) = self.known.get(&index) {
            return sum.clone();
        }
        let sum = match self.facts.get(func, index) {
            Some(affine) => Sum { affine: (*affine).clone(), tiles: BTreeMap::new() },
            None => self.of_operands(func, index, depth).filter(Sum::is_short).unwrap_or_else(|| Sum {
                affine: Affine::uniform(Polynomial::default(), func.ty(index).shape().len()),
                tiles: BTreeMap::from([(index, Polynomial::constant(1))]),
            }),
        };
        self.known.insert(index, sum.clone());
        sum
    }

    fn of_operands(&mut self, func: &Function, index: Value, depth: u32) -> Option<Sum> {
        let &Op::Binary { op, lhs, rhs } = func.def_op(index).filter(|_| depth < MOST_DEPTH)? else { return None };
        let mut of = |operand| self.at_depth(func, operand, depth + 1);
        match op {
            BinaryOp::Add => Some(of(lhs).plus(&of(rhs), 1)),
            BinaryOp::Sub => Some(of(lhs).plus(&of(rhs), -1)),
            BinaryOp::Mul => {
                let (lhs, rhs) = (of(lhs), of(rhs));
                if let Some(factor) = rhs.uniform() { lhs.times(factor) } else { rhs.times(lhs.uniform()?) }
            }
            BinaryOp::Shl => {
                let amount = func.splat(rhs).and_then(ConstExpr::as_int).filter(|amount| (0..62).contains(amount))?;
                of(lhs).times(&Polynomial::constant(1 << amount))
            }
            _ => None,
        }
    }
}

impl Sum {
    fn uniform(&self) -> Option<&Polynomial> {
        (self.tiles.is_empty() && self.affine.is_uniform()).then_some(&self.affine.start)
    }

    fn plus(&self, other: &Sum, sign: i64) -> Sum {
        let mut sum = self.clone();
        sum.affine = if sign > 0 { sum.affine.plus(&other.affine) } else { sum.affine.minus(&other.affine) };
        for (tile, factor) in &other.tiles {
            let own = sum.tiles.entry(*tile).or_default();
            *own = own.plus(&factor.scaled(sign));
        }
        sum.tiles.retain(|_, factor| !factor.is(0));
        sum
    }

    fn is_short(&self) -> bool {
        self.tiles.len() <= Polynomial::MOST_TERMS && self.polynomials().all(Polynomial::is_short)
    }

    fn times(&self, factor: &Polynomial) -> Option<Sum> {
        let tiles: Option<_> = self.tiles.iter().map(|(tile, own)| Some((*tile, own.times(factor)?))).collect();
        let start = self.affine.start.times(factor)?;
        let strides: Option<_> = self.affine.strides.iter().map(|stride| stride.times(factor)).collect();
        Some(Sum { affine: Affine { start, strides: strides? }, tiles: tiles? })
    }

    fn polynomials(&self) -> impl Iterator<Item = &Polynomial> {
        [&self.affine.start].into_iter().chain(&self.affine.strides).chain(self.tiles.values())
    }

    /// The same sum with the constant 0.
    pub(super) fn without_constant(&self) -> Sum {
        let mut rest = self.clone();
        rest.affine.start.constant = 0;
        rest
    }

    /// Is a sum of the same terms one more, or one less?
    pub(super) fn is_beside(&self, other: &Sum) -> bool {
        self.affine.start.constant.abs_diff(other.affine.start.constant) == 1
    }

    /// The lower one of two sums of the same terms.
    pub(super) fn lower<'s>(&'s self, other: &'s Sum) -> &'s Sum {
        if self.affine.start.constant <= other.affine.start.constant { self } else { other }
    }
}

/// The conditions for exact halves of indices.
#[derive(Default)]
pub(super) struct Halves {
    loops: Option<FxHashMap<Value, Loop>>,
    /// The sizes in all grids, and in small ones.
    sizes: [Option<Sizes>; 2],
    /// Must grids be small?
    needs_small_grid: bool,
    /// Products that must be at least 0 and small, by their factors.
    small: Vec<Vec<Value>>,
    /// Products of which one factor must be even.
    products: Vec<Vec<Value>>,
    /// The factors that must be even.
    even: Vec<Value>,
}

impl Halves {
    /// Has an index of a tile exact halves in launches that meet a condition? If so, the function adds that condition to the others.
    pub(super) fn admit(&mut self, func: &Function, index: &Sum, extents: &[usize]) -> bool {
        let products: Option<Vec<Vec<Vec<Value>>>> = index.polynomials().map(|polynomial| odd_products(func, polynomial)).collect();
        let Some(products) = products else { return false };
        let loops = self.loops.get_or_insert_with(|| loops::by_index(func));
        let bounded = |programs: i64, sizes: &mut Option<Sizes>| {
            bounded(func, loops, sizes.get_or_insert_with(|| Sizes::in_grids_below(func, programs.into())), index, extents)
        };
        let [of_all, of_small] = &mut self.sizes;
        let small = bounded(1 << 31, of_all).or_else(|| {
            let small = bounded(PROGRAMS, of_small)?;
            self.needs_small_grid = true;
            Some(small)
        });
        let Some(small) = small else { return false };
        add_new(&mut self.products, products.into_iter().flatten());
        add_new(&mut self.small, small);
        true
    }

    /// Chooses factors that must be even, so that each product has one: first those that most products have.
    pub(super) fn choose(&mut self) {
        loop {
            self.products.retain(|product| !product.iter().any(|factor| self.even.contains(factor)));
            let count = |factor: &Value| self.products.iter().filter(|product| product.contains(factor)).count();
            let Some(factor) = self.products.iter().flatten().copied().max_by_key(|factor| (count(factor), *factor)) else { return };
            self.even.push(factor);
        }
    }

    /// Does the condition fail in many launches? It does if it tests whether factors are even, or the grid is small.
    pub(super) fn often_fail(&self) -> bool {
        !self.even.is_empty() || self.needs_small_grid
    }

    /// Appends the test of everything that was admitted, and that `rests` are 0.
    pub(super) fn test(&self, b: &mut Builder<'_>, mut rests: Vec<Value>) -> Value {
        let mut copies = Copies::new(b.region);
        let mut copied = |b: &mut Builder<'_>, scalar: Value| {
            copies.add_all(b.func, &computation(b.func, scalar, &Op::is_uniform).expect("the host knows it"));
            copies.copy(scalar)
        };
        let (zero, one) = (b.index(0), b.index(1));
        for factor in &self.even {
            let factor = copied(b, *factor);
            rests.push(b.binary(BinaryOp::And, factor, one));
        }
        let mut small = Vec::new();
        for factors in &self.small {
            let mut product: Option<Value> = None;
            for factor in factors {
                let factor = copied(b, *factor);
                small.push(factor);
                // It is exact: both numbers are small.
                product = Some(product.map_or(factor, |product| {
                    let next = b.binary(BinaryOp::Mul, product, factor);
                    small.push(next);
                    next
                }));
            }
        }
        let rest = bounds::any_bit(b, rests).unwrap_or(zero);
        let mut is_whole = b.compare(CompareOp::Eq, rest, zero);
        if self.needs_small_grid {
            let programs = (0..3).map(|axis| b.op(Op::NumPrograms { axis }, &[])).collect();
            let is_small = bounds::are_below(b, programs, PROGRAMS).expect("a grid has axes");
            is_whole = b.binary(BinaryOp::And, is_whole, is_small);
        }
        match bounds::are_below(b, small, END) {
            Some(are_small) => b.binary(BinaryOp::And, is_whole, are_small),
            None => is_whole,
        }
    }

    /// Appends the half of an index that was admitted, as a tile of that shape.
    pub(super) fn value(&self, b: &mut Builder<'_>, index: &Sum, shape: &[ConstExpr]) -> Value {
        let strides: Vec<Polynomial> = index.affine.strides.iter().map(|stride| self.half(b, stride)).collect();
        let start = self.half(b, &index.affine.start);
        let steps = Affine { start: Polynomial::default(), strides };
        let mut terms = Vec::new();
        if !start.is(0) {
            let start = start.value(b);
            terms.push(b.broadcast(start, shape));
        }
        if !steps.is_uniform() {
            terms.push(steps.strides_value(b, shape));
        }
        for (tile, factor) in &index.tiles {
            let factor = self.half(b, factor);
            let term = if factor.is(1) {
                *tile
            } else {
                let factor = factor.value(b);
                let factor = b.broadcast(factor, shape);
                b.binary(BinaryOp::Mul, *tile, factor)
            };
            terms.push(term);
        }
        let sum = terms.into_iter().reduce(|sum, term| b.binary(BinaryOp::Add, sum, term));
        sum.unwrap_or_else(|| {
            let zero = b.index(0);
            b.broadcast(zero, shape)
        })
    }

    fn half(&self, b: &mut Builder<'_>, polynomial: &Polynomial) -> Polynomial {
        let mut half = Polynomial::constant(polynomial.constant / 2);
        for (factors, coefficient) in &polynomial.terms {
            let (mut factors, mut coefficient) = (factors.clone(), *coefficient);
            if coefficient % 2 == 0 {
                coefficient /= 2;
            } else {
                let odd = factors.iter_mut().find(|factor| self.even.contains(factor)).expect("the index was admitted");
                let one = b.index(1);
                *odd = b.binary(BinaryOp::Shr, *odd, one);
                factors.sort_unstable();
            }
            half = half.plus(&Polynomial { terms: vec![(factors, coefficient)], constant: 0 });
        }
        half
    }
}

/// Adds the products that are not in a list.
fn add_new(list: &mut Vec<Vec<Value>>, products: impl IntoIterator<Item = Vec<Value>>) {
    for product in products {
        if !list.contains(&product) {
            list.push(product);
        }
    }
}

/// Of each term that is not even by its coefficient: the factors that may be even, and that the host knows. `None` if a term has none.
fn odd_products(func: &Function, polynomial: &Polynomial) -> Option<Vec<Vec<Value>>> {
    if polynomial.constant % 2 != 0 {
        return None;
    }
    let odd = polynomial.terms.iter().filter(|(_, coefficient)| coefficient % 2 != 0);
    let known = odd.map(|(factors, _)| factors.iter().copied().filter(|factor| is_known(func, *factor)).collect());
    known.map(|known: Vec<Value>| (!known.is_empty()).then_some(known)).collect()
}

/// Does the host know a scalar at launch?
fn is_known(func: &Function, scalar: Value) -> bool {
    computation(func, scalar, &Op::is_uniform).is_some()
}

/// The products that must be small, so that an index of a tile has the value of its exact sum; `None` if it may have another one.
fn bounded(func: &Function, loops: &FxHashMap<Value, Loop>, sizes: &Sizes, index: &Sum, extents: &[usize]) -> Option<Vec<Vec<Value>>> {
    let mut small = Vec::new();
    // An unknown value may be any number of 64 bits.
    let magnitude = |value: Value| sizes.size(func, value).map_or(u128::MAX, |size| size.magnitude());
    let mut most = |polynomial: &Polynomial, times: u128| {
        let mut sum = u128::from(polynomial.constant.unsigned_abs());
        for (factors, coefficient) in &polynomial.terms {
            let mut product = u128::from(coefficient.unsigned_abs());
            let mut ends = Vec::new();
            for factor in factors {
                let end = loops.get(factor).filter(|around| sizes.is_natural(func, around.lower)).map_or(*factor, |around| around.upper);
                if is_known(func, end) {
                    ends.push(end);
                } else {
                    product = product.saturating_mul(magnitude(*factor));
                }
            }
            if !ends.is_empty() {
                product = product.saturating_mul(END as u128);
                small.push(ends);
            }
            sum = sum.saturating_add(product);
        }
        sum.saturating_mul(times)
    };
    let start = most(&index.affine.start, 1);
    let strides = index.affine.strides.iter().zip(extents).map(|(stride, extent)| most(stride, extent.saturating_sub(1) as u128));
    let strides = strides.fold(0, u128::saturating_add);
    let tiles = index.tiles.iter().map(|(tile, factor)| most(factor, magnitude(*tile))).fold(0, u128::saturating_add);
    (start.saturating_add(strides).saturating_add(tiles) <= MOST).then_some(small)
}
