//! The copy for full tiles: each tile of `[extent]` becomes one of `[extent / run, run]`, or of `[extent / run]` if it is the same for a run.

mod accesses;

use std::collections::HashMap;

use crate::analysis::affine::{Affine, AffineFacts};
use crate::analysis::polynomial::Polynomial;
use crate::analysis::ranges::reciprocal::{self, Reciprocal};
use crate::analysis::ranges::{Divisor, divisor};
use crate::dtype::Dtype;
use crate::ir::rewrite::Substitution;
use crate::ir::{BinaryOp, Builder, ConstExpr, Function, Inst, Op, Region, Type, UnaryOp, Value};
use crate::location::Loc;

use super::quotients;
use super::runs::{Grant, Run};
use super::{Flat, Full, is_index_tile};

/// A tile of the copy.
#[derive(Clone, Copy)]
struct Tile {
    value: Value,
    /// Has it one element for each run?
    is_of_runs: bool,
}

/// A tile of indices: `base + step * i + constant` modulo 2^32, where `i` is the position in the run. The sum fits in 32 bits, but a part of it need
/// not.
#[derive(Clone, Copy)]
struct Index {
    /// Zero if absent.
    base: Option<Tile>,
    step: i64,
    constant: i64,
}

/// Writes the copy to `region`, and returns the values that replace `results`, which are scalars.
pub(super) fn run(
    flat: &Flat,
    func: &mut Function,
    full: &Full<'_>,
    results: &[Value],
    region: Region,
    facts: &mut AffineFacts,
    grant: Grant,
) -> Vec<Value> {
    let runs = flat.runs(func, grant).known(full, facts, &mut flat.demands.clone());
    let shared = quotients::shared(func, full.ops, &flat.indices, &runs);
    let extents = [flat.extent / flat.run, flat.run].map(|extent| ConstExpr::Int(extent as i128));
    let b = Builder::new(func, region, Loc::NONE);
    let mut copy = Copy {
        flat,
        full,
        facts,
        b,
        grant,
        runs,
        extents,
        scalars: Substitution::new(),
        tiles: HashMap::new(),
        indices: HashMap::new(),
        reciprocals: HashMap::new(),
        shared,
    };
    for inst in full.ops {
        copy.op(*inst);
    }
    results.iter().map(|result| copy.scalars.get(*result)).collect()
}

struct Copy<'a, 'f> {
    flat: &'a Flat,
    full: &'a Full<'a>,
    facts: &'a mut AffineFacts,
    b: Builder<'f>,
    grant: Grant,
    runs: HashMap<Value, Run>,
    /// The number of runs, and the length of a run.
    extents: [ConstExpr; 2],
    scalars: Substitution,
    tiles: HashMap<Value, Tile>,
    indices: HashMap<Value, Index>,
    reciprocals: HashMap<Value, Reciprocal>,
    /// By quotient: another quotient and a divisor of it that give the same.
    shared: HashMap<Value, (Value, Value)>,
}

impl Copy<'_, '_> {
    fn op(&mut self, inst: Inst) {
        let data = self.b.func.inst(inst).clone();
        self.b.loc = data.loc;
        let is_tile = |value: &Value| self.b.func.ty(*value).is_tile();
        match data.op {
            Op::Load { .. } | Op::Store { .. } | Op::Atomic { .. } => self.access(inst, data.op, &data.results),
            Op::Compare { op, lhs, rhs } if self.is_exact(lhs) && self.is_exact(rhs) && !self.full.holds(data.results[0]) => {
                let tile = self.compare(op, lhs, rhs, self.runs.get(&data.results[0]).copied());
                self.tiles.insert(data.results[0], tile);
            }
            // Indices are written where they are used.
            _ if data.results.iter().any(|result| self.is_index(*result)) => {}
            op if data.results.iter().any(is_tile) => {
                let tile = self.elementwise(op, data.results[0]);
                self.tiles.insert(data.results[0], tile);
            }
            mut op => {
                op.map_operands(&mut |value| self.scalars.get(value));
                let types: Vec<Type> = data.results.iter().map(|result| self.b.func.ty(*result).clone()).collect();
                let copy = self.b.func.append(self.b.region, op, types, self.b.loc);
                for (old, new) in data.results.iter().zip(self.b.func.inst(copy).results.clone()) {
                    self.scalars.insert(*old, new);
                }
            }
        }
    }

    fn is_index(&self, value: Value) -> bool {
        self.flat.indices.contains(&value)
    }

    /// Is it computed in 32 bits, with every element as it is?
    fn is_exact(&self, value: Value) -> bool {
        self.is_index(value) && !self.flat.clamped.contains(&value)
    }

    fn shape(&self, is_of_runs: bool) -> &[ConstExpr] {
        if is_of_runs { &self.extents[..1] } else { &self.extents }
    }

    /// The tile with an element for each element.
    fn spread(&mut self, tile: Tile) -> Value {
        if !tile.is_of_runs {
            return tile.value;
        }
        let column = self.b.expand_dims(tile.value, 1);
        self.b.broadcast(column, &self.extents)
    }

    /// Two tiles of one shape.
    fn together<const N: usize>(&mut self, tiles: [Tile; N]) -> ([Value; N], bool) {
        let is_of_runs = tiles.iter().all(|tile| tile.is_of_runs);
        (tiles.map(|tile| if is_of_runs { tile.value } else { self.spread(tile) }), is_of_runs)
    }

    /// The tile that replaces a tile of the region, or of the code before it.
    fn tile(&mut self, value: Value) -> Tile {
        if let Some(tile) = self.tiles.get(&value) {
            return *tile;
        }
        let tile = if self.full.holds(value) {
            let ty = Type::tile(Dtype::Bool, self.shape(true).to_vec());
            Tile { value: self.b.constant(ConstExpr::Bool(true), ty), is_of_runs: true }
        } else if let Some(constant) = self.b.func.splat(value).cloned() {
            let ty = Type::tile(self.b.func.ty(value).elem().clone(), self.shape(true).to_vec());
            Tile { value: self.b.constant(constant, ty), is_of_runs: true }
        } else if let Some(affine) = self.affine(value) {
            self.affine_tile(&affine)
        } else if self.flat.clamped.contains(&value) {
            let op = self.b.func.def_op(value).cloned().expect("it was clamped");
            self.elementwise(op, value)
        } else if self.is_index(value) {
            let index = self.index(value);
            let tile = self.elements(index);
            Tile { value: self.b.cast(tile.value, Dtype::I64), ..tile }
        } else {
            Tile { value: self.b.reshape(value, &self.extents.clone()), is_of_runs: false }
        };
        self.tiles.insert(value, tile);
        tile
    }

    fn affine(&mut self, value: Value) -> Option<Affine> {
        self.facts.get(self.b.func, value).filter(|_| is_index_tile(self.b.func, value))
    }

    fn affine_tile(&mut self, affine: &Affine) -> Tile {
        // Scalars of the region have copies.
        let stride = affine.strides[0].map(&|scalar| self.scalars.get(scalar));
        let steps = if stride.is(0) { Vec::new() } else { vec![stride.scaled(self.flat.run as i64), stride] };
        self.affine_sum(affine, steps)
    }

    /// `start + strides`, with a stride for each axis of the tile, or no stride for a tile of runs.
    fn affine_sum(&mut self, affine: &Affine, strides: Vec<Polynomial>) -> Tile {
        let start = affine.start.map(&|scalar| self.scalars.get(scalar)).value(&mut self.b);
        let is_of_runs = strides.len() < 2;
        let shape = self.shape(is_of_runs).to_vec();
        let start = self.b.broadcast(start, &shape);
        if strides.is_empty() {
            return Tile { value: start, is_of_runs };
        }
        let steps = Affine { start: Polynomial::default(), strides };
        let steps = steps.strides_value(&mut self.b, &shape);
        Tile { value: self.b.binary(BinaryOp::Add, start, steps), is_of_runs }
    }

    /// An op that works on each element by itself.
    fn elementwise(&mut self, mut op: Op, result: Value) -> Tile {
        let mut tiles = Vec::new();
        op.for_each_operand(&mut |value| tiles.push(value));
        tiles.retain(|value| self.b.func.ty(*value).is_tile());
        let is_of_runs = if self.full.holds(result) {
            return self.tile(result);
        } else {
            tiles.iter().all(|value| self.tile(*value).is_of_runs)
        };
        op.map_operands(&mut |value| {
            if !self.b.func.ty(value).is_tile() {
                return self.scalars.get(value);
            }
            let tile = self.tile(value);
            if is_of_runs { tile.value } else { self.spread(tile) }
        });
        let ty = Type::tile(self.b.func.ty(result).elem().clone(), self.shape(is_of_runs).to_vec());
        let value = match op {
            // An `arange` is affine.
            Op::Arange { .. } => return self.tile(result),
            op => {
                let copy = self.b.func.append(self.b.region, op, [ty], self.b.loc);
                self.b.func.result(copy)
            }
        };
        Tile { value, is_of_runs }
    }

    fn compare(&mut self, op: crate::ir::CompareOp, lhs: Value, rhs: Value, run: Option<Run>) -> Tile {
        let (left, right) = (self.index(lhs), self.index(rhs));
        let ([left, right], is_of_runs) = if matches!(run, Some(Run::Same { .. })) {
            // What holds for the first element of a run holds for all.
            let [left, right] = [left, right].map(|index| Index { step: 0, ..index });
            let tiles = [self.elements(left), self.elements(right)];
            self.together(tiles)
        } else {
            let tiles = [self.elements(left), self.elements(right)];
            self.together(tiles)
        };
        Tile { value: self.b.compare(op, left, right), is_of_runs }
    }

    /// The elements of an index, as `i32`.
    fn elements(&mut self, index: Index) -> Tile {
        let is_of_runs = index.step == 0 && index.base.is_none_or(|base| base.is_of_runs);
        let base = match index.base {
            Some(base) if is_of_runs => Some(base.value),
            Some(base) => Some(self.spread(base)),
            None => None,
        };
        let ty = Type::tile(Dtype::I32, self.shape(is_of_runs).to_vec());
        let rest = if index.step == 0 {
            // The element fits in 32 bits, its constant part need not.
            let constant = index.constant as i32;
            (constant != 0 || base.is_none()).then(|| self.b.constant(ConstExpr::Int(constant.into()), ty))
        } else {
            let steps = self.steps(index);
            Some(self.b.cast(steps, Dtype::I32))
        };
        let value = match (base, rest) {
            (Some(base), Some(rest)) => self.b.binary(BinaryOp::Add, base, rest),
            (one, other) => one.or(other).expect("a base or a constant"),
        };
        Tile { value, is_of_runs }
    }

    /// `step * i + constant` for each element, as `i64`.
    fn steps(&mut self, index: Index) -> Value {
        let affine = Affine::steps(&[0, index.step]);
        let extents = self.extents.clone();
        let steps = affine.strides_value(&mut self.b, &extents);
        if index.constant == 0 {
            return steps;
        }
        let constant = self.b.int_like(index.constant.into(), steps);
        self.b.binary(BinaryOp::Add, steps, constant)
    }

    /// An index in 32 bits. The recursion is as deep as the chain of ops, which is limited for indices that have a range.
    fn index(&mut self, value: Value) -> Index {
        if let Some(index) = self.indices.get(&value) {
            return *index;
        }
        let index = self.computed(value);
        self.indices.insert(value, index);
        index
    }

    fn computed(&mut self, value: Value) -> Index {
        if let Some(constant) = self.b.func.splat(value).and_then(ConstExpr::as_int) {
            return Index { base: None, step: 0, constant: constant as i64 };
        }
        let op = self.b.func.def_op(value).cloned().expect("an index with a range is computed");
        match op {
            Op::Arange { start, .. } => {
                let count = self.extents[0].clone();
                let numbers = self.b.op(Op::Arange { start: ConstExpr::Int(0), end: count }, &[]);
                let numbers = self.b.cast(numbers, Dtype::I32);
                let run = self.b.int_like(self.flat.run as i128, numbers);
                let base = self.b.binary(BinaryOp::Mul, numbers, run);
                let start = start.as_int().expect("a range was found") as i64;
                Index { base: Some(Tile { value: base, is_of_runs: true }), step: 1, constant: start }
            }
            Op::Broadcast { x } => {
                let x = self.scalars.get(x);
                let narrow = self.b.cast(x, Dtype::I32);
                let extents = self.shape(true).to_vec();
                Index { base: Some(Tile { value: self.b.broadcast(narrow, &extents), is_of_runs: true }), step: 0, constant: 0 }
            }
            Op::Cast { x } => {
                // A cast clamps, in 32 bits as in 64.
                let tile = self.tile(x);
                Index::of(Tile { value: self.b.cast(tile.value, Dtype::I32), ..tile })
            }
            Op::Unary { op: UnaryOp::Neg, x } => {
                let x = self.index(x);
                self.scaled(x, -1)
            }
            Op::Unary { op: UnaryOp::Abs, x } => {
                let x = self.index(x);
                let tile = self.elements(x);
                Index::of(Tile { value: self.b.unary(UnaryOp::Abs, tile.value), ..tile })
            }
            Op::Binary { op: BinaryOp::Add, lhs, rhs } => {
                let (x, y) = (self.index(lhs), self.index(rhs));
                self.sum(x, y)
            }
            Op::Binary { op: BinaryOp::Sub, lhs, rhs } => {
                let (x, y) = (self.index(lhs), self.index(rhs));
                self.difference(x, y)
            }
            Op::Binary { op: BinaryOp::Mul, lhs, rhs } => {
                let (x, y) = (self.index(lhs), self.index(rhs));
                match (x, y) {
                    (x, Index { base: None, step: 0, constant }) | (Index { base: None, step: 0, constant }, x) => self.scaled(x, constant),
                    _ => self.of_elements(BinaryOp::Mul, x, y),
                }
            }
            Op::Binary { op: op @ (BinaryOp::Div | BinaryOp::Rem), lhs, rhs } => {
                let of = divisor(self.b.func, rhs).expect("a range was found");
                let (lhs, of) = match self.shared.get(&value) {
                    Some((quotient, divisor)) => (*quotient, Divisor::Scalar(*divisor)),
                    None => (lhs, of),
                };
                self.divided(op, lhs, of, self.runs.get(&value).copied())
            }
            Op::Binary { op, lhs, rhs } => {
                let (x, y) = (self.index(lhs), self.index(rhs));
                self.of_elements(op, x, y)
            }
            Op::Select { cond, on_true, on_false } => {
                let (x, y) = (self.index(on_true), self.index(on_false));
                let cond = if self.b.func.ty(cond).is_tile() {
                    self.tile(cond)
                } else {
                    let (scalar, extents) = (self.scalars.get(cond), self.shape(true).to_vec());
                    Tile { value: self.b.broadcast(scalar, &extents), is_of_runs: true }
                };
                let tiles = [cond, self.elements(x), self.elements(y)];
                let ([cond, x, y], is_of_runs) = self.together(tiles);
                Index::of(Tile { value: self.b.select(cond, x, y), is_of_runs })
            }
            _ => unreachable!("such an index has no range"),
        }
    }

    fn of_elements(&mut self, op: BinaryOp, x: Index, y: Index) -> Index {
        let tiles = [self.elements(x), self.elements(y)];
        let ([x, y], is_of_runs) = self.together(tiles);
        Index::of(Tile { value: self.b.binary(op, x, y), is_of_runs })
    }

    fn sum(&mut self, x: Index, y: Index) -> Index {
        let base = match (x.base, y.base) {
            (Some(x), Some(y)) => {
                let ([x, y], is_of_runs) = self.together([x, y]);
                Some(Tile { value: self.b.binary(BinaryOp::Add, x, y), is_of_runs })
            }
            (one, other) => one.or(other),
        };
        Index { base, step: x.step.wrapping_add(y.step), constant: x.constant.wrapping_add(y.constant) }
    }

    fn difference(&mut self, x: Index, y: Index) -> Index {
        let (Some(left), Some(right)) = (x.base, y.base) else {
            let y = self.scaled(y, -1);
            return self.sum(x, y);
        };
        let ([left, right], is_of_runs) = self.together([left, right]);
        let base = Tile { value: self.b.binary(BinaryOp::Sub, left, right), is_of_runs };
        Index { base: Some(base), step: x.step.wrapping_sub(y.step), constant: x.constant.wrapping_sub(y.constant) }
    }

    fn scaled(&mut self, x: Index, factor: i64) -> Index {
        let base = x.base.map(|base| {
            let factor = self.b.int_like(factor.into(), base.value);
            Tile { value: self.b.binary(BinaryOp::Mul, base.value, factor), ..base }
        });
        Index { base, step: x.step.wrapping_mul(factor), constant: x.constant.wrapping_mul(factor) }
    }

    fn divided(&mut self, op: BinaryOp, dividend: Value, of: Divisor, run: Option<Run>) -> Index {
        let x = self.index(dividend);
        // Where the quotient is the same for a run, it is that of the first element, and remainders are its remainder and the next numbers.
        let is_in_runs = match op {
            BinaryOp::Div => matches!(run, Some(Run::Same { .. })),
            _ => matches!(run, Some(Run::Steps { .. })),
        };
        let step = if is_in_runs && op == BinaryOp::Rem { x.step } else { 0 };
        let x = self.elements(if is_in_runs { Index { step: 0, ..x } } else { x });
        let value = match of {
            Divisor::Constant(constant) => reciprocal::by_constant(&mut self.b, op, x.value, constant),
            Divisor::Scalar(scalar) => {
                let scalar = self.scalars.get(scalar);
                let b = &mut self.b;
                let reciprocal = *self.reciprocals.entry(scalar).or_insert_with(|| Reciprocal::of(b, scalar));
                reciprocal.divided(b, op, x.value)
            }
        };
        Index { step, ..Index::of(Tile { value, ..x }) }
    }
}

impl Index {
    fn of(base: Tile) -> Index {
        Index { base: Some(base), step: 0, constant: 0 }
    }
}
