//! The copy for full tiles: each tile of `[extent]` becomes one of `[extent / run, run]`, or of `[extent / run]` if it is the same for a run.

mod accesses;

use std::rc::Rc;

use rustc_hash::FxHashMap;

use crate::analysis::affine::{Affine, AffineFacts};
use crate::analysis::polynomial::Polynomial;
use crate::analysis::ranges::{Divisor, divisor};
use crate::dtype::Dtype;
use crate::ir::rewrite::Substitution;
use crate::ir::{BinaryOp, Builder, CompareOp, ConstExpr, Function, Inst, Op, Region, Type, UnaryOp, Value};
use crate::location::Loc;
use crate::passes::divide;

use super::quotients;
use super::runs::{Grant, Run};
use super::{Flat, Full, is_index_tile};

/// A tile of the copy.
#[derive(Clone, Copy)]
struct Tile {
    value: Value,
    /// Has it one element for each run?
    is_of_runs: bool,
    /// Present if each run has at most two different elements.
    ends: Option<Ends>,
}

/// The two elements of each run. An op that works on each element by itself is done for both, instead of for all elements.
#[derive(Clone, Copy)]
struct Ends {
    /// The element at the start of each run.
    first: Value,
    /// The element at the end. It may be anything in a run that has only one element.
    second: Value,
    /// For each element: is it the second one?
    is_second: Value,
    /// For each run: has it the second one?
    has_second: Value,
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
        tiles: FxHashMap::default(),
        indices: FxHashMap::default(),
        crossings: FxHashMap::default(),
        shared,
    };
    for inst in full.ops {
        copy.op(*inst);
    }
    results.iter().map(|result| copy.scalars.get(*result)).collect()
}

/// A division of neighbours by a number that is at least the run's length: each run crosses at most one multiple of it.
#[derive(Clone, Copy)]
struct Crossing {
    /// The quotient and the remainder of the first element of each run.
    quotient: Value,
    remainder: Value,
    divisor: Value,
    /// For each element: is it behind the multiple?
    is_behind: Value,
    /// For each run: is the last element behind it?
    crosses: Value,
}

struct Copy<'a, 'f> {
    flat: &'a Flat,
    full: &'a Full<'a>,
    facts: &'a mut AffineFacts,
    b: Builder<'f>,
    grant: Grant,
    runs: FxHashMap<Value, Run>,
    /// The number of runs, and the length of a run.
    extents: [ConstExpr; 2],
    scalars: Substitution,
    tiles: FxHashMap<Value, Tile>,
    indices: FxHashMap<Value, Index>,
    /// By dividend and divisor: how runs cross a multiple of the divisor.
    crossings: FxHashMap<(Value, Divisor), Crossing>,
    /// By quotient: another quotient and a divisor of it that give the same.
    shared: FxHashMap<Value, (Value, Value)>,
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

    /// A tile of which each run has two elements.
    fn of_ends(&mut self, ends: Ends) -> Tile {
        let [first, second] = [ends.first, ends.second].map(|value| self.spread(Tile::of_runs(value)));
        let value = self.b.select(ends.is_second, second, first);
        Tile { value, is_of_runs: false, ends: Some(ends) }
    }

    /// Writes an op that works on each element by itself.
    fn apply(&mut self, tiles: &[Tile], write: &dyn Fn(&mut Builder<'_>, &[Value]) -> Value) -> Tile {
        let mut all = tiles.iter().filter_map(|tile| tile.ends);
        if let Some(Ends { is_second, has_second, .. }) = all.next()
            && all.all(|ends| ends.is_second == is_second)
            && tiles.iter().all(|tile| tile.is_of_runs || tile.ends.is_some())
        {
            let firsts: Vec<Value> = tiles.iter().map(|tile| tile.ends.map_or(tile.value, |ends| ends.first)).collect();
            let seconds: Vec<Value> = tiles.iter().map(|tile| tile.ends.map_or(tile.value, |ends| ends.second)).collect();
            let (first, second) = (write(&mut self.b, &firsts), write(&mut self.b, &seconds));
            return self.of_ends(Ends { first, second, is_second, has_second });
        }
        let is_of_runs = tiles.iter().all(|tile| tile.is_of_runs);
        let values: Vec<Value> = tiles.iter().map(|tile| if is_of_runs { tile.value } else { self.spread(*tile) }).collect();
        Tile { value: write(&mut self.b, &values), is_of_runs, ends: None }
    }

    fn binary(&mut self, op: BinaryOp, x: Tile, y: Tile) -> Tile {
        self.apply(&[x, y], &|b, values| b.binary(op, values[0], values[1]))
    }

    /// The tile that replaces a tile of the region, or of the code before it.
    fn tile(&mut self, value: Value) -> Tile {
        if let Some(tile) = self.tiles.get(&value) {
            return *tile;
        }
        let tile = if self.full.holds(value) {
            let ty = Type::tile(Dtype::Bool, self.shape(true).to_vec());
            Tile::of_runs(self.b.constant(ConstExpr::Bool(true), ty))
        } else if let Some(constant) = self.b.func.splat(value).cloned() {
            let ty = Type::tile(self.b.func.ty(value).elem().clone(), self.shape(true).to_vec());
            Tile::of_runs(self.b.constant(constant, ty))
        } else if let Some(affine) = self.affine(value) {
            self.affine_tile(&affine)
        } else if self.flat.clamped.contains(&value) {
            let op = self.b.func.def_op(value).cloned().expect("it was clamped");
            self.elementwise(op, value)
        } else if self.is_index(value) {
            let index = self.index(value);
            let tile = self.elements(index);
            self.apply(&[tile], &|b, values| b.cast(values[0], Dtype::I64))
        } else {
            Tile::of_elements(self.b.reshape(value, &self.extents.clone()))
        };
        self.tiles.insert(value, tile);
        tile
    }

    fn affine(&mut self, value: Value) -> Option<Rc<Affine>> {
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
            return Tile { value: start, is_of_runs, ends: None };
        }
        let steps = Affine { start: Polynomial::default(), strides };
        let steps = steps.strides_value(&mut self.b, &shape);
        Tile { value: self.b.binary(BinaryOp::Add, start, steps), is_of_runs, ends: None }
    }

    /// An op that works on each element by itself.
    fn elementwise(&mut self, mut op: Op, result: Value) -> Tile {
        // An `arange` is affine.
        if self.full.holds(result) || matches!(op, Op::Arange { .. }) {
            return self.tile(result);
        }
        let mut tiles = Vec::new();
        let mut is_tile = Vec::new();
        op.for_each_operand(&mut |value| {
            is_tile.push(self.b.func.ty(value).is_tile());
            if is_tile.last() == Some(&true) {
                tiles.push(value);
            }
        });
        let is_mask = self.b.func.ty(result).dtype() == Dtype::Bool;
        let tiles: Vec<Tile> = tiles
            .into_iter()
            .map(|value| {
                let tile = self.tile(value);
                if is_mask { tile.whole() } else { tile }
            })
            .collect();
        op.map_operands(&mut |value| self.scalars.get(value));
        let elem = self.b.func.ty(result).elem().clone();
        let shapes = [self.shape(true).to_vec(), self.shape(false).to_vec()];
        self.apply(&tiles, &|b, values| {
            let (mut copy, mut values, mut is_tile) = (op.clone(), values.iter(), is_tile.iter());
            let mut shape = &shapes[0];
            copy.map_operands(&mut |value| match is_tile.next() {
                Some(true) => {
                    let value = *values.next().expect("each tile has a value");
                    shape = if b.func.ty(value).shape().len() > 1 { &shapes[1] } else { shape };
                    value
                }
                _ => value,
            });
            b.op(copy, &[Type::tile(elem.clone(), shape.clone())])
        })
    }

    fn compare(&mut self, op: CompareOp, lhs: Value, rhs: Value, run: Option<Run>) -> Tile {
        let (mut left, mut right) = (self.index(lhs), self.index(rhs));
        if matches!(run, Some(Run::Same { .. })) {
            // What holds for the first element of a run holds for all.
            (left.step, right.step) = (0, 0);
        }
        let tiles = [self.elements(left).whole(), self.elements(right).whole()];
        self.apply(&tiles, &|b, values| b.compare(op, values[0], values[1]))
    }

    /// The elements of an index, as `i32`.
    fn elements(&mut self, index: Index) -> Tile {
        let mut base = index.base;
        let rest = if index.step == 0 {
            // The element fits in 32 bits, its constant part need not.
            let constant = index.constant as i32;
            let is_of_runs = base.is_none_or(|base| base.is_of_runs || base.ends.is_some());
            let ty = Type::tile(Dtype::I32, self.shape(is_of_runs).to_vec());
            (constant != 0 || base.is_none()).then(|| {
                let value = self.b.constant(ConstExpr::Int(constant.into()), ty);
                Tile { value, is_of_runs, ends: None }
            })
        } else {
            base = base.map(|base| Tile::of_elements(self.spread(base)));
            let steps = self.steps(index);
            Some(Tile::of_elements(self.b.cast(steps, Dtype::I32)))
        };
        match (base, rest) {
            (Some(base), Some(rest)) => self.binary(BinaryOp::Add, base, rest),
            (one, other) => one.or(other).expect("a base or a constant"),
        }
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
                Index { base: Some(Tile::of_runs(base)), step: 1, constant: start }
            }
            Op::Broadcast { x } => {
                let x = self.scalars.get(x);
                let narrow = self.b.cast(x, Dtype::I32);
                let extents = self.shape(true).to_vec();
                Index::of(Tile::of_runs(self.b.broadcast(narrow, &extents)))
            }
            Op::Cast { x } => {
                // A cast clamps, in 32 bits as in 64.
                let tile = self.tile(x);
                Index::of(self.apply(&[tile], &|b, values| b.cast(values[0], Dtype::I32)))
            }
            Op::Unary { op: UnaryOp::Neg, x } => {
                let x = self.index(x);
                self.scaled(x, -1)
            }
            Op::Unary { op: UnaryOp::Abs, x } => {
                let x = self.index(x);
                let tile = self.elements(x);
                Index::of(self.apply(&[tile], &|b, values| b.unary(UnaryOp::Abs, values[0])))
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
                    Tile::of_runs(self.b.broadcast(scalar, &extents))
                };
                let tiles = [cond, self.elements(x), self.elements(y)];
                Index::of(self.apply(&tiles, &|b, values| b.select(values[0], values[1], values[2])))
            }
            _ => unreachable!("such an index has no range"),
        }
    }

    fn of_elements(&mut self, op: BinaryOp, x: Index, y: Index) -> Index {
        let (x, y) = (self.elements(x), self.elements(y));
        Index::of(self.binary(op, x, y))
    }

    fn sum(&mut self, x: Index, y: Index) -> Index {
        let base = match (x.base, y.base) {
            (Some(x), Some(y)) => Some(self.binary(BinaryOp::Add, x, y)),
            (one, other) => one.or(other),
        };
        Index { base, step: x.step.wrapping_add(y.step), constant: x.constant.wrapping_add(y.constant) }
    }

    fn difference(&mut self, x: Index, y: Index) -> Index {
        let (Some(left), Some(right)) = (x.base, y.base) else {
            let y = self.scaled(y, -1);
            return self.sum(x, y);
        };
        let base = self.binary(BinaryOp::Sub, left, right);
        Index { base: Some(base), step: x.step.wrapping_sub(y.step), constant: x.constant.wrapping_sub(y.constant) }
    }

    fn scaled(&mut self, x: Index, factor: i64) -> Index {
        let base = x.base.map(|base| {
            self.apply(&[base], &|b, values| {
                let factor = b.int_like(factor.into(), values[0]);
                b.binary(BinaryOp::Mul, values[0], factor)
            })
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
        if !is_in_runs && let Some(crossing) = self.crossing(dividend, x, of) {
            return self.crossed(op, crossing);
        }
        let step = if is_in_runs && op == BinaryOp::Rem { x.step } else { 0 };
        let x = self.elements(if is_in_runs { Index { step: 0, ..x } } else { x });
        Index { step, ..Index::of(self.quotients(op, x, of)) }
    }

    /// The quotients or the remainders of a tile.
    fn quotients(&mut self, op: BinaryOp, x: Tile, of: Divisor) -> Tile {
        let of = match of {
            Divisor::Scalar(scalar) => Divisor::Scalar(self.scalars.get(scalar)),
            constant => constant,
        };
        self.apply(&[x], &|b, values| divide::naturals(b, op, values[0], of))
    }

    /// How runs of neighbours cross a multiple of a divisor that is at least the run's length.
    fn crossing(&mut self, dividend: Value, x: Index, of: Divisor) -> Option<Crossing> {
        let is_run = x.step == 1 && x.base.is_none_or(|base| base.is_of_runs);
        if !is_run || self.grant != Grant::Long || !self.flat.demands.is_long(of, self.flat.run) {
            return None;
        }
        if let Some(crossing) = self.crossings.get(&(dividend, of)) {
            return Some(*crossing);
        }
        let first = self.elements(Index { step: 0, ..x });
        let [quotient, remainder] = [BinaryOp::Div, BinaryOp::Rem].map(|op| self.quotients(op, first, of).value);
        let divisor = match of {
            Divisor::Constant(constant) => self.b.int_like(constant.into(), quotient),
            Divisor::Scalar(scalar) => {
                let (scalar, extents) = (self.scalars.get(scalar), self.shape(true).to_vec());
                let narrow = self.b.cast(scalar, Dtype::I32);
                self.b.broadcast(narrow, &extents)
            }
        };
        let left = self.b.binary(BinaryOp::Sub, divisor, remainder);
        let run = self.b.int_like(self.flat.run as i128, left);
        let crosses = self.b.compare(CompareOp::Lt, left, run);
        let left = self.spread(Tile::of_runs(left));
        let positions = self.steps(Index { base: None, step: 1, constant: 0 });
        let positions = self.b.cast(positions, Dtype::I32);
        let is_behind = self.b.compare(CompareOp::Ge, positions, left);
        let crossing = Crossing { quotient, remainder, divisor, is_behind, crosses };
        self.crossings.insert((dividend, of), crossing);
        Some(crossing)
    }

    /// The quotients are two numbers in a run. The remainders are neighbours, which begin again behind the multiple.
    fn crossed(&mut self, op: BinaryOp, crossing: Crossing) -> Index {
        let Crossing { quotient, remainder, divisor, is_behind, crosses } = crossing;
        let (first, second, step) = if op == BinaryOp::Div {
            let one = self.b.int_like(1, quotient);
            (quotient, self.b.binary(BinaryOp::Add, quotient, one), 0)
        } else {
            (remainder, self.b.binary(BinaryOp::Sub, remainder, divisor), 1)
        };
        let base = self.of_ends(Ends { first, second, is_second: is_behind, has_second: crosses });
        Index { step, ..Index::of(base) }
    }
}

impl Tile {
    fn of_runs(value: Value) -> Tile {
        Tile { value, is_of_runs: true, ends: None }
    }

    fn of_elements(value: Value) -> Tile {
        Tile { value, is_of_runs: false, ends: None }
    }

    /// The tile without the elements of runs: to select one of two predicates takes more instructions than a comparison.
    fn whole(self) -> Tile {
        Tile { ends: None, ..self }
    }
}

impl Index {
    fn of(base: Tile) -> Index {
        Index { base: Some(base), step: 0, constant: 0 }
    }
}
