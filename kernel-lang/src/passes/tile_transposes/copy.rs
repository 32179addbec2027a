//! The copy of a kernel with tiles of rows and columns, and the condition of the copy.

use rustc_hash::FxHashMap;

use crate::analysis::affine::Affine;
use crate::analysis::bounds;
use crate::analysis::factors::Factors;
use crate::analysis::polynomial::Polynomial;
use crate::dtype::Dtype;
use crate::ir::{BinaryOp, Builder, CompareOp, ConstExpr, Function, Inst, Op, Region, Type, Value};
use crate::location::Loc;

use super::Flat;
use super::digits::{Part, Parts};
use crate::passes::flat_indices::is_index_tile;

/// Extents and their products must be at most this: the products are then exact, and divisions take 32 bits.
const END: i64 = 1 << 31;

/// A copy for tiles of some extents.
pub(super) struct Copy {
    /// The ops that compute the condition.
    pub(super) head: Region,
    /// Does a program compute a tile of the copy?
    pub(super) cond: Value,
    /// The copy.
    pub(super) body: Region,
}

/// Writes the copy, unless an op cannot be computed in other programs.
pub(super) fn write(func: &mut Function, flat: &Flat, period: &Factors, extents: [usize; 2]) -> Option<Copy> {
    let known = Known::of(func, flat, period);
    let demands = known.demands(func, flat, period, extents);
    let [head, body] = [0; 2].map(|_| func.add_region());
    let mut b = Builder::new(func, head, Loc::NONE);
    let (cond, first) = condition(&mut b, flat, &known, &demands, period, extents);
    b.region = body;
    let shape = extents.map(|extent| ConstExpr::Int(extent as i128));
    let mut writer = Writer { b, flat, known: &known, first, shape, scalars: FxHashMap::default(), tiles: FxHashMap::default() };
    for inst in &flat.ops {
        writer.op(*inst)?;
    }
    Builder::new(func, body, Loc::NONE).yield_values(Vec::new());
    Some(Copy { head, cond, body })
}

/// What is known of the tiles of a kernel.
struct Known {
    /// The tiles of indices whose elements follow from their row and column.
    indices: FxHashMap<Value, Parts>,
    /// The masks `flat < limit`, which hold for a whole tile if its last row ends in front of the limit.
    full: FxHashMap<Value, Polynomial>,
}

impl Known {
    fn of(func: &Function, flat: &Flat, period: &Factors) -> Known {
        let mut digits = flat.digits(func);
        let (mut indices, mut full) = (FxHashMap::default(), FxHashMap::default());
        for inst in &flat.ops {
            let data = func.inst(*inst);
            let [result] = data.results[..] else { continue };
            if is_index_tile(func, result)
                && let Some(parts) = digits.parts(result, period)
            {
                indices.insert(result, parts);
            }
            let Op::Compare { op, lhs, rhs } = data.op else { continue };
            let (index, limit) = match op {
                CompareOp::Lt | CompareOp::Le => (lhs, rhs),
                CompareOp::Gt | CompareOp::Ge => (rhs, lhs),
                _ => continue,
            };
            if is_index_tile(func, index)
                && digits.form(index).is_some_and(|form| form.is_whole())
                && let Some(Parts { parts, rest, .. }) = indices.get(&limit)
                && parts.is_empty()
            {
                full.insert(result, rest.clone());
            }
        }
        Known { indices, full }
    }

    /// Is the op in the copy? The others are indices, which are written where they are used, and what only the number of the program gives.
    fn is_copied(&self, func: &Function, inst: Inst) -> bool {
        let data = func.inst(inst);
        let is_known = |result: &Value| self.indices.contains_key(result) || self.full.contains_key(result) || !func.ty(*result).is_tile();
        !data.results.iter().any(is_known) && !matches!(data.op, Op::Arange { .. })
    }

    /// What makes the indices in the copy what their parts say.
    fn demands(&self, func: &Function, flat: &Flat, period: &Factors, extents: [usize; 2]) -> Demands {
        let mut demands = Demands { small: vec![period.clone()], multiples: vec![(period.clone(), extents[1])] };
        for inst in flat.ops.iter().filter(|inst| self.is_copied(func, **inst)) {
            func.inst(*inst).op.for_each_operand(&mut |operand| {
                let Some(index) = self.indices.get(&operand) else { return };
                index.parts.iter().for_each(|(part, _)| demands.part(part, extents[part.axis]));
                index.exact.iter().for_each(|factors| demands.small(factors));
            });
        }
        demands
    }
}

/// What the condition must test.
struct Demands {
    /// These must be positive, and they and their products small.
    small: Vec<Factors>,
    /// These must be multiples of the extents beside them.
    multiples: Vec<(Factors, usize)>,
}

impl Demands {
    /// The digit must have one value in a tile, or steps of 1 if it is the lowest one.
    fn part(&mut self, Part { low, size, .. }: &Part, extent: usize) {
        let divisors = [Some(low), size.as_ref()].into_iter().flatten().filter(|divisor| !divisor.is_one());
        for (at, divisor) in divisors.enumerate() {
            self.small(divisor);
            let demand = (divisor.clone(), extent);
            if at == 0 && !self.multiples.contains(&demand) {
                self.multiples.push(demand);
            }
        }
    }

    fn small(&mut self, factors: &Factors) {
        if !self.small.contains(factors) {
            self.small.push(factors.clone());
        }
    }

    /// Appends the test of the demands. It divides nothing, because it often fails.
    fn test(&self, b: &mut Builder<'_>) -> Value {
        let (mut small, mut rests) = (Vec::new(), Vec::new());
        let one = b.index(1);
        for factors in &self.small {
            for product in partial_products(b, factors) {
                small.push(b.binary(BinaryOp::Sub, product, one)); // negative where the product is 0
            }
        }
        for (factors, extent) in &self.multiples {
            let (product, low_bits) = (product(b, factors), b.index(*extent as i128 - 1));
            rests.push(b.binary(BinaryOp::And, product, low_bits));
        }
        let is_small = are_small(b, small);
        let (rest, zero) = (bounds::any_bit(b, rests).expect("the period is a multiple"), b.index(0));
        let is_whole = b.compare(CompareOp::Eq, rest, zero);
        b.binary(BinaryOp::And, is_small, is_whole)
    }
}

/// Appends the test whether a program computes a tile of the copy, which all programs of the same rows do then, and its first row and column.
/// Programs that follow each other take tiles of the same rows.
fn condition(
    b: &mut Builder<'_>,
    flat: &Flat,
    known: &Known,
    demands: &Demands,
    period: &Factors,
    extents: [usize; 2],
) -> (Value, [Value; 2]) {
    let (head, loc) = (b.region, b.loc);
    let is_divisible = demands.test(b);
    let [then_region, else_region] = [0; 2].map(|_| b.func.add_region());

    b.region = then_region;
    let period = product(b, period);
    let by = b.index(extents[1].trailing_zeros().into());
    let beside = b.binary(BinaryOp::Shr, period, by); // at least 1, because the period is a multiple
    let above = divided(b, BinaryOp::Div, flat.program, beside);
    let before = b.binary(BinaryOp::Mul, above, beside);
    let column = b.binary(BinaryOp::Sub, flat.program, before);
    let after = b.binary(BinaryOp::Add, before, beside);
    let [rows, columns] = extents.map(|extent| b.index(extent as i128));
    let row = b.binary(BinaryOp::Mul, above, rows);
    let column = b.binary(BinaryOp::Mul, column, columns);
    let end = b.binary(BinaryOp::Add, row, rows);
    let programs = b.op(Op::NumPrograms { axis: 0 }, &[]);
    let mut tests = vec![are_small(b, vec![end]), b.compare(CompareOp::Le, after, programs)];
    let end = b.binary(BinaryOp::Mul, end, period);
    let mut limits: Vec<(&Value, &Polynomial)> = known.full.iter().collect();
    limits.sort_by_key(|(mask, _)| **mask);
    for (_, limit) in limits {
        let limit = limit.value(b);
        tests.push(b.compare(CompareOp::Le, end, limit));
    }
    let holds = tests.into_iter().reduce(|all, test| b.binary(BinaryOp::And, all, test)).expect("there are tests");
    b.yield_values(vec![holds, row, column]);

    b.region = else_region;
    let (never, zero) = (b.constant(ConstExpr::Bool(false), Type::scalar(Dtype::Bool)), b.index(0));
    b.yield_values(vec![never, zero, zero]);
    let types = [Dtype::Bool, Dtype::I64, Dtype::I64].map(Type::scalar);
    let branch = b.func.append(head, Op::If { cond: is_divisible, then_region, else_region, rare: false }, types, loc);
    let [holds, row, column] = b.func.inst(branch).results[..] else { unreachable!("the branch has three results") };
    (holds, [row, column])
}

/// Appends the products of the first factors, the first two, and so on.
fn partial_products(b: &mut Builder<'_>, factors: &Factors) -> Vec<Value> {
    let mut products = Vec::new();
    if factors.constant() != 1 || factors.scalars().is_empty() {
        products.push(b.index(factors.constant()));
    }
    for scalar in factors.scalars() {
        let product = products.last().map_or(*scalar, |product| b.binary(BinaryOp::Mul, *product, *scalar));
        products.extend([*scalar, product]);
    }
    products
}

fn product(b: &mut Builder<'_>, factors: &Factors) -> Value {
    *partial_products(b, factors).last().expect("a product has a factor")
}

fn are_small(b: &mut Builder<'_>, numbers: Vec<Value>) -> Value {
    bounds::are_below(b, numbers, END).expect("there are numbers")
}

/// The quotient or the remainder of numbers below 2^32.
fn divided(b: &mut Builder<'_>, op: BinaryOp, lhs: Value, rhs: Value) -> Value {
    let [lhs, rhs] = [lhs, rhs].map(|value| b.cast(value, Dtype::U32));
    let result = b.binary(op, lhs, rhs);
    b.cast(result, Dtype::I64)
}

struct Writer<'a, 'f> {
    b: Builder<'f>,
    flat: &'a Flat,
    known: &'a Known,
    /// The row and the column of the first element.
    first: [Value; 2],
    shape: [ConstExpr; 2],
    /// The digits of the first element.
    scalars: FxHashMap<Part, Value>,
    tiles: FxHashMap<Value, Value>,
}

impl Writer<'_, '_> {
    /// Copies an op.
    fn op(&mut self, inst: Inst) -> Option<()> {
        let mut data = self.b.func.inst(inst).clone();
        self.b.loc = data.loc;
        if let [result] = data.results[..]
            && self.known.full.contains_key(&result)
        {
            let always = self.b.constant(ConstExpr::Bool(true), Type::tile(Dtype::Bool, self.shape.to_vec()));
            self.tiles.insert(result, always);
        }
        if !self.known.is_copied(self.b.func, inst) {
            return Some(());
        }
        let mut operands = Vec::new();
        data.op.for_each_operand(&mut |operand| operands.push(operand));
        let replaced: Option<FxHashMap<Value, Value>> =
            operands.into_iter().map(|operand| Some((operand, self.operand(operand)?))).collect();
        let Some(replaced) = replaced else {
            // An access is needed. Another op may be a part of an index.
            return data.op.access().is_none().then_some(());
        };
        data.op.map_operands(&mut |operand| replaced[&operand]);
        let types = data.results.iter().map(|result| Type::tile(self.b.func.ty(*result).elem().clone(), self.shape.to_vec()));
        let types: Vec<Type> = types.collect();
        let copy = self.b.func.append(self.b.region, data.op, types, data.loc);
        let results = self.b.func.inst(copy).results.clone();
        self.tiles.extend(data.results.into_iter().zip(results));
        Some(())
    }

    /// What replaces an operand; `None` if it depends on which program computes an element.
    fn operand(&mut self, value: Value) -> Option<Value> {
        if !self.b.func.ty(value).is_tile() {
            return (!self.flat.varying.contains(&value)).then_some(value);
        }
        if !self.tiles.contains_key(&value)
            && let Some(parts) = self.known.indices.get(&value)
        {
            let tile = self.index(parts);
            self.tiles.insert(value, tile);
        }
        self.tiles.get(&value).copied()
    }

    /// A tile of indices: a start, and a stride for rows and for columns.
    fn index(&mut self, Parts { parts, rest, .. }: &Parts) -> Value {
        let mut strides = vec![Polynomial::default(), Polynomial::default()];
        let mut start = (!rest.is(0)).then(|| rest.value(&mut self.b));
        for (part, coefficient) in parts {
            if part.low.is_one() {
                strides[part.axis] = strides[part.axis].plus(coefficient);
            }
            let mut term = self.first(part);
            if !coefficient.is(1) {
                let coefficient = coefficient.value(&mut self.b);
                term = self.b.binary(BinaryOp::Mul, term, coefficient);
            }
            start = Some(start.map_or(term, |start| self.b.binary(BinaryOp::Add, start, term)));
        }
        let start = start.unwrap_or_else(|| self.b.index(0));
        let start = self.b.broadcast(start, &self.shape);
        let steps = Affine { start: Polynomial::default(), strides };
        if steps.is_uniform() {
            return start;
        }
        let steps = steps.strides_value(&mut self.b, &self.shape);
        self.b.binary(BinaryOp::Add, start, steps)
    }

    /// The digit of the tile's first element. In the tile, the digit has steps of 1 along its axis if it is the lowest one, and else one value.
    fn first(&mut self, part: &Part) -> Value {
        if let Some(value) = self.scalars.get(part) {
            return *value;
        }
        let Part { axis, low, size } = part;
        let mut value = self.first[*axis];
        for (op, divisor) in [(BinaryOp::Div, Some(low)), (BinaryOp::Rem, size.as_ref())] {
            if let Some(divisor) = divisor.filter(|divisor| !divisor.is_one()) {
                let divisor = product(&mut self.b, divisor);
                value = divided(&mut self.b, op, value, divisor);
            }
        }
        self.scalars.insert(part.clone(), value);
        value
    }
}
