//! How values differ within a run of neighbours, and what a divisor must be so that they do not.
//!
//! A run is `run` neighbours that begin at a multiple of `run`, a power of two. For a divisor `n` that is a multiple of `run`, every index of a
//! run has the same quotient, and the remainders are neighbours:
//!
//! | value, run = 4 | in a run | in words |
//! |---|---|---|
//! | `o = start + arange` | 20 21 22 23 | steps of 1, from a multiple of 4 |
//! | `o / 12` | 1 1 1 1 | the same |
//! | `o % 12` | 8 9 10 11 | steps of 1, from a multiple of 4 |
//! | `2 * (o % 12) - 1` | 15 17 19 21 | steps of 2 |
//! | `o / 5` | 4 4 4 4 or 4 4 5 5 | two values: 5 is no multiple of 4, but at least 4 |
//! | `o / 3` | 6 6 7 7 or 6 7 7 7 or 7 7 7 8 | varied |

use rustc_hash::{FxHashMap, FxHashSet};

use crate::analysis::affine::AffineFacts;
use crate::analysis::ranges::{Divisor, divisor};
use crate::ir::{BinaryOp, Builder, CompareOp, Function, Inst, Op, Type, UnaryOp, Value};

use super::{Full, WIDEST, are_multiples, is_index_tile};

/// The most divisors that are demanded: each may need a search of its own.
const MOST_DIVISORS: usize = 16;
/// The most ops of one index among which strides are searched.
const MOST_STEPS: u32 = 64;

/// How the elements of a run differ.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Run {
    /// They do not.
    Same {
        /// Is the value a multiple of the run's length?
        is_aligned: bool,
    },
    /// Each is `by` more than the one before.
    Steps {
        /// The difference.
        by: i64,
        /// Is the first one a multiple of the run's length?
        is_aligned: bool,
    },
    /// The first elements have one value, and the others have another one, if there are others: a quotient by a divisor that is at least the run's length.
    Ends,
    /// Nothing is known.
    Varied,
}

/// The scalars that must be multiples of the run's length, and the pointers that must be aligned, so that a run has one quotient and one wide access.
#[derive(Clone, Default)]
pub(super) struct Demands {
    /// Divisors of flat indices.
    divisors: Demand,
    /// Divisors of their remainders, such as `s` in `o % w % s`. These may be small where the others are multiples.
    inner: Demand,
    /// Strides such as `s` in `row * s + column`: what more makes further accesses wide.
    strides: Demand,
    /// Further divisors of flat indices: constants, and those of runs that begin anywhere, which have several quotients also by a multiple.
    others: Vec<Divisor>,
    /// Is a version worth its code that only needs the divisors of flat indices to be at least the run's length?
    takes_long: bool,
}

/// What one test decides.
#[derive(Clone, Default)]
struct Demand {
    /// Scalars that must be multiples of the run's length.
    multiples: Vec<Value>,
    /// Pointers, and the bytes to a multiple of which each must point.
    bases: Vec<(Value, usize)>,
    /// Pointers to tensors whose lengths must be multiples of the run's length: a run lies inside with all its elements, or with none.
    lengths: Vec<Value>,
}

impl Demand {
    fn is_empty(&self) -> bool {
        self.multiples.is_empty() && self.bases.is_empty()
    }

    fn test(&self, b: &mut Builder<'_>, run: usize) -> Value {
        let mut numbers: Vec<(Value, usize)> = self.multiples.iter().map(|scalar| (*scalar, run)).collect();
        for base in &self.lengths {
            numbers.push((b.length(*base), run));
        }
        for (base, bytes) in &self.bases {
            numbers.push((b.address(*base), *bytes));
        }
        are_multiples(b, &numbers)
    }
}

impl Demands {
    /// What can be granted, the most first.
    pub(super) fn grants(&self) -> Vec<Grant> {
        let grants = [(Grant::Strides, &self.strides), (Grant::Inner, &self.inner), (Grant::Divisors, &self.divisors)];
        let long = self.takes_long.then_some(Grant::Long);
        grants.into_iter().filter(|(_, demand)| !demand.is_empty()).map(|(grant, _)| grant).chain(long).collect()
    }

    /// Appends the test for a grant.
    pub(super) fn test(&self, b: &mut Builder<'_>, grant: Grant, run: usize) -> Value {
        if grant == Grant::Long {
            let others = self.others.iter().filter_map(|divisor| if let Divisor::Scalar(scalar) = divisor { Some(*scalar) } else { None });
            let scalars = self.divisors.multiples.iter().copied().chain(others);
            let least = scalars.reduce(|least, divisor| b.binary(BinaryOp::Min, least, divisor));
            let run = b.index(run as i128);
            // A constant divisor is long, or it is none of these.
            return b.compare(CompareOp::Ge, least.unwrap_or(run), run);
        }
        let tests: Vec<Value> = self.granted(grant).filter(|demand| !demand.is_empty()).map(|demand| demand.test(b, run)).collect();
        tests.into_iter().reduce(|all, test| b.binary(BinaryOp::And, all, test)).expect("something is demanded")
    }

    /// The parts that a grant grants.
    fn granted(&self, grant: Grant) -> impl Iterator<Item = &Demand> {
        let parts = match grant {
            Grant::None | Grant::Long => 0,
            Grant::Divisors => 1,
            Grant::Inner | Grant::Collect => 2,
            Grant::Strides => 3,
        };
        [&self.divisors, &self.inner, &self.strides].into_iter().take(parts)
    }

    /// If the divisors of flat indices are long: is this one at least the run's length?
    pub(super) fn is_long(&self, divisor: Divisor, run: usize) -> bool {
        match divisor {
            Divisor::Constant(constant) => constant >= run as i64,
            Divisor::Scalar(scalar) => self.divisors.multiples.contains(&scalar) || self.others.contains(&divisor),
        }
    }

    /// The number of divisors.
    fn count(&self) -> usize {
        self.divisors.multiples.len() + self.inner.multiples.len()
    }

    /// Adds a further divisor of a flat index, if it may be at least the run's length.
    fn add_other(&mut self, divisor: Divisor, run: usize) {
        let may_be_long = !matches!(divisor, Divisor::Constant(constant) if constant < run as i64);
        if may_be_long && self.others.len() < MOST_DIVISORS && !self.others.contains(&divisor) {
            self.others.push(divisor);
        }
    }
}

/// The computation of [`Run`]s.
pub(super) struct Runs<'a> {
    pub(super) func: &'a Function,
    /// The tiles of indices that are computed in 32 bits. Their divisors are known in front of the region.
    pub(super) indices: &'a FxHashSet<Value>,
    /// The first index and the step of the loops around the region.
    pub(super) starts: &'a FxHashMap<Value, [Value; 2]>,
    pub(super) run: usize,
    pub(super) grant: Grant,
}

/// What is assumed of divisors.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Grant {
    /// Those that are worth it are demanded.
    Collect,
    /// All divisors and strides that were demanded are multiples of the run's length.
    Strides,
    /// All divisors that were demanded are.
    Inner,
    /// The divisors of flat indices that were demanded are.
    Divisors,
    /// The divisors of flat indices are at least the run's length.
    Long,
    /// Nothing.
    None,
}

impl Runs<'_> {
    /// What the region demands.
    pub(super) fn demands(&self, full: &Full<'_>, facts: &mut AffineFacts, inside: &FxHashSet<Inst>) -> Demands {
        let mut demands = Demands::default();
        if self.run == 1 {
            return demands;
        }
        // A divisor may be a multiple because of one that is demanded later. Each search demands a further one, or is the last.
        let runs = loop {
            let count = demands.count();
            let runs = self.known(full, facts, &mut demands);
            if demands.count() == count {
                break runs;
            }
        };
        for inst in full.ops {
            let Some(access) = self.func.inst(*inst).op.access() else { continue };
            let mut strides = demands.strides.multiples.clone();
            if let Some(Run::Steps { by: 1, is_aligned: false }) = runs.get(&access.offset)
                && inside.contains(inst)
                && self.strides_of(access.offset, &runs, &mut strides, &mut { MOST_STEPS })
            {
                demands.strides.multiples = strides;
            }
        }
        for grant in [Grant::Divisors, Grant::Inner, Grant::Strides] {
            let granted = Runs { grant, ..*self };
            let runs = granted.known(full, facts, &mut demands);
            let (mut bases, mut lengths) = self.wide_bases(full, facts, inside, &runs);
            bases.retain(|base| !demands.granted(grant).any(|demand| demand.bases.contains(base)));
            lengths.retain(|base| !demands.granted(grant).any(|demand| demand.lengths.contains(base)));
            match grant {
                Grant::Divisors => (demands.divisors.bases, demands.divisors.lengths) = (bases, lengths),
                Grant::Inner if !demands.inner.multiples.is_empty() => (demands.inner.bases, demands.inner.lengths) = (bases, lengths),
                Grant::Strides if !demands.strides.multiples.is_empty() => demands.strides.bases = bases,
                _ => {}
            }
        }
        if demands.strides.bases.is_empty() {
            demands.strides = Demand::default();
        }
        demands.takes_long = self.gains_from_ends(full, facts, &mut demands);
        demands
    }

    /// Is it worth a version to compute the two quotients of each run, instead of one for each element? A single division takes little more than to select a
    /// quotient, so this must save divisions or loads. Masks are computed for each element: those of quotients take what the quotients save.
    fn gains_from_ends(&self, full: &Full<'_>, facts: &mut AffineFacts, demands: &mut Demands) -> bool {
        if demands.divisors.multiples.is_empty() && demands.others.is_empty() {
            return false;
        }
        let mut divisions: FxHashSet<(Value, Divisor)> = FxHashSet::default();
        for inst in full.ops {
            match self.func.inst(*inst).op {
                Op::Binary { op: BinaryOp::Div | BinaryOp::Rem, lhs, rhs } if self.indices.contains(&lhs) => {
                    divisions.extend(divisor(self.func, rhs).map(|divisor| (lhs, divisor)));
                }
                Op::Compare { lhs, rhs, .. } if self.is_of_quotients([lhs, rhs]) => return false,
                _ => {}
            }
        }
        let mut saves_loads = || {
            let runs = Runs { grant: Grant::Long, ..*self }.known(full, facts, demands);
            full.ops.iter().any(|inst| {
                let data = self.func.inst(*inst);
                matches!(data.op, Op::Load { .. }) && runs.get(&data.results[0]) == Some(&Run::Ends)
            })
        };
        divisions.len() > 1 || saves_loads()
    }

    /// Is one of these indices computed from a quotient?
    fn is_of_quotients(&self, indices: [Value; 2]) -> bool {
        let (mut next, mut seen) = (indices.to_vec(), FxHashSet::default());
        while let Some(value) = next.pop() {
            if !self.indices.contains(&value) || !seen.insert(value) {
                continue;
            }
            match self.func.def_op(value) {
                Some(Op::Binary { op: BinaryOp::Div, .. }) => return true,
                Some(Op::Binary { op: BinaryOp::Rem, lhs, .. }) => next.push(*lhs),
                Some(op) => op.for_each_operand(&mut |operand| next.push(operand)),
                None => {}
            }
        }
        false
    }

    /// The pointers to which wide accesses are made, with the bytes of an access. Of those whose indices have no range, a second list.
    fn wide_bases(
        &self,
        full: &Full<'_>,
        facts: &mut AffineFacts,
        inside: &FxHashSet<Inst>,
        runs: &FxHashMap<Value, Run>,
    ) -> (Vec<(Value, usize)>, Vec<Value>) {
        let (mut bases, mut lengths) = (Vec::new(), Vec::new());
        for inst in full.ops {
            let Some(access) = self.func.inst(*inst).op.access().filter(|access| access.can_be_wide(self.func)) else { continue };
            let is_guarded = !self.func.unchecked && !full.accesses.contains_key(inst) && !inside.contains(inst);
            if let Some(Run::Steps { by: 1, is_aligned: true }) = runs.get(&access.offset)
                && facts.get(self.func, access.offset).is_none()
                && access.mask.is_none_or(|mask| matches!(runs.get(&mask), Some(Run::Same { .. })))
            {
                let base = (access.base, self.width(access.base));
                if !bases.contains(&base) {
                    bases.push(base);
                }
                if is_guarded && !lengths.contains(&access.base) {
                    lengths.push(access.base);
                }
            }
        }
        (bases, lengths)
    }

    /// Adds the scalars that must be multiples of the run's length so that a value is one. Returns whether there are such scalars.
    fn strides_of(&self, value: Value, runs: &FxHashMap<Value, Run>, strides: &mut Vec<Value>, steps: &mut u32) -> bool {
        if *steps == 0 || strides.len() > MOST_DIVISORS {
            return false;
        }
        *steps -= 1;
        if matches!(runs.get(&value), Some(Run::Same { is_aligned: true } | Run::Steps { is_aligned: true, .. })) {
            return true;
        }
        match self.func.def_op(value) {
            Some(Op::Broadcast { x }) if self.func.ty(*x).is_scalar() => {
                if !strides.contains(x) {
                    strides.push(*x);
                }
                true
            }
            Some(Op::Binary { op: BinaryOp::Add | BinaryOp::Sub, lhs, rhs }) => {
                self.strides_of(*lhs, runs, strides, steps) && self.strides_of(*rhs, runs, strides, steps)
            }
            Some(Op::Binary { op: BinaryOp::Mul, lhs, rhs }) => [*rhs, *lhs].into_iter().any(|factor| {
                let count = strides.len();
                let found = self.strides_of(factor, runs, strides, steps);
                strides.truncate(if found { strides.len() } else { count });
                found
            }),
            _ => false,
        }
    }

    /// Is a pointer aligned for accesses to whole runs?
    pub(super) fn is_aligned(&self, demands: &Demands, base: Value) -> bool {
        demands.granted(self.grant).any(|demand| demand.bases.contains(&(base, self.width(base))))
    }

    /// Has a tensor only whole runs?
    pub(super) fn has_whole_runs(&self, demands: &Demands, base: Value) -> bool {
        self.func.unchecked || demands.granted(self.grant).any(|demand| demand.lengths.contains(&base))
    }

    /// The bytes of an access to a whole run, as far as one instruction moves them.
    pub(super) fn width(&self, base: Value) -> usize {
        (self.run * self.func.ty(base).dtype().bytes()).min(WIDEST)
    }

    /// The runs of all tiles of the region. Divisors are added to `demands` if all demands are to be granted.
    pub(super) fn known(&self, full: &Full<'_>, facts: &mut AffineFacts, demands: &mut Demands) -> FxHashMap<Value, Run> {
        let own = full.ops.iter().flat_map(|inst| &self.func.inst(*inst).results).copied().collect();
        let taken_apart = self.taken_apart(full.ops);
        let mut search = Search { runs: self, full, facts, own, taken_apart, known: FxHashMap::default(), demands };
        for inst in full.ops {
            for result in &self.func.inst(*inst).results {
                if self.func.ty(*result).is_tile() {
                    let run = search.of(*result);
                    search.known.insert(*result, run);
                }
            }
        }
        search.known
    }

    /// The pairs of dividend and divisor of which the region computes the remainder: such a division takes an index apart. A quotient without
    /// its remainder, such as `column / scale`, is demanded only of a flat index.
    fn taken_apart(&self, ops: &[Inst]) -> FxHashSet<(Value, Divisor)> {
        let remainders = ops.iter().filter_map(|inst| match self.func.inst(*inst).op {
            Op::Binary { op: BinaryOp::Rem, lhs, rhs } if is_index_tile(self.func, lhs) => Some((lhs, divisor(self.func, rhs)?)),
            _ => None,
        });
        remainders.collect()
    }

    fn combined(&self, op: BinaryOp, (x, lhs): (Run, Value), (y, rhs): (Run, Value)) -> Run {
        use Run::{Ends, Same, Steps, Varied};
        let number = |value: Value| self.func.splat(value).and_then(|constant| i64::try_from(constant.as_int()?).ok());
        let steps = |by: i64, is_aligned: bool| if by == 0 { Same { is_aligned } } else { Steps { by, is_aligned } };
        match (op, x, y) {
            (BinaryOp::Add | BinaryOp::Sub, Same { is_aligned: a }, Same { is_aligned: b }) => Same { is_aligned: a && b },
            (BinaryOp::Add | BinaryOp::Sub, Steps { by, is_aligned: a }, Same { is_aligned: b }) => Steps { by, is_aligned: a && b },
            (BinaryOp::Add, Same { is_aligned: a }, Steps { by, is_aligned: b }) => Steps { by, is_aligned: a && b },
            (BinaryOp::Sub, Same { is_aligned: a }, Steps { by, is_aligned: b }) => steps(by.wrapping_neg(), a && b),
            (BinaryOp::Add, Steps { by: p, is_aligned: a }, Steps { by: q, is_aligned: b }) => steps(p.wrapping_add(q), a && b),
            (BinaryOp::Sub, Steps { by: p, is_aligned: a }, Steps { by: q, is_aligned: b }) => steps(p.wrapping_sub(q), a && b),
            (BinaryOp::Mul, Same { is_aligned: a }, Same { is_aligned: b }) => Same { is_aligned: a || b },
            (BinaryOp::Mul, Steps { by, is_aligned }, Same { .. }) if let Some(factor) = number(rhs) => {
                steps(by.wrapping_mul(factor), is_aligned)
            }
            (BinaryOp::Mul, Same { .. }, Steps { by, is_aligned }) if let Some(factor) = number(lhs) => {
                steps(by.wrapping_mul(factor), is_aligned)
            }
            (_, Same { .. }, Same { .. }) => Same { is_aligned: false },
            (_, Ends, Same { .. }) | (_, Same { .. }, Ends) => Ends,
            _ => Varied,
        }
    }

    /// Is a divisor a multiple of the run's length, if the demands are granted? If it is to be demanded, it is added to them.
    fn is_multiple_divisor(&self, divisor: Divisor, demanded: Option<Grant>, demands: &mut Demands) -> bool {
        match divisor {
            Divisor::Constant(constant) => constant % self.run as i64 == 0,
            Divisor::Scalar(value) => {
                // A divisor of a flat index is not left to the divisors of remainders, which may be granted less often.
                let granted = if self.grant == Grant::Collect { demanded.unwrap_or(self.grant) } else { self.grant };
                if (Runs { grant: granted, ..*self }).is_multiple(value, demands, 8) {
                    return true;
                }
                if self.grant != Grant::Collect || demands.count() >= MOST_DIVISORS {
                    return false;
                }
                match demanded {
                    Some(Grant::Divisors) => demands.divisors.multiples.push(value),
                    Some(_) => demands.inner.multiples.push(value),
                    None => return false,
                }
                true
            }
        }
    }

    /// Is a scalar a multiple of the run's length, if the demands are granted?
    fn is_multiple(&self, value: Value, demands: &Demands, depth: u32) -> bool {
        if demands.granted(self.grant).any(|demand| demand.multiples.contains(&value)) {
            return true;
        }
        if depth == 0 {
            return false;
        }
        if let Some(start) = self.starts.get(&value) {
            return start.iter().all(|part| self.is_multiple(*part, demands, depth - 1));
        }
        match self.func.def_op(value) {
            Some(Op::Const { value }) => value.as_int().is_some_and(|constant| constant % self.run as i128 == 0),
            Some(Op::Binary { op: BinaryOp::Mul, lhs, rhs }) => {
                self.is_multiple(*lhs, demands, depth - 1) || self.is_multiple(*rhs, demands, depth - 1)
            }
            Some(Op::Binary { op: BinaryOp::Add | BinaryOp::Sub, lhs, rhs }) => {
                self.is_multiple(*lhs, demands, depth - 1) && self.is_multiple(*rhs, demands, depth - 1)
            }
            Some(Op::Binary { op: BinaryOp::Shl, lhs, rhs }) => {
                let bits = self.func.splat(*rhs).and_then(|bits| bits.as_int()).filter(|bits| (0..63).contains(bits));
                bits.is_some_and(|bits| (1i128 << bits) % self.run as i128 == 0) || self.is_multiple(*lhs, demands, depth - 1)
            }
            _ => false,
        }
    }
}

/// The search for the runs of one region.
struct Search<'a> {
    runs: &'a Runs<'a>,
    full: &'a Full<'a>,
    facts: &'a mut AffineFacts,
    /// The values of the region.
    own: FxHashSet<Value>,
    taken_apart: FxHashSet<(Value, Divisor)>,
    known: FxHashMap<Value, Run>,
    demands: &'a mut Demands,
}

impl Search<'_> {
    /// The run of a value. The operands in the region have been visited. Of the code before the region, only the leaves are known.
    fn of(&mut self, value: Value) -> Run {
        if let Some(run) = self.known.get(&value) {
            return *run;
        }
        let (func, runs) = (self.runs.func, self.runs);
        let same = Run::Same { is_aligned: false };
        if let Some(constant) = func.splat(value) {
            return Run::Same { is_aligned: constant.as_int().is_some_and(|constant| constant % runs.run as i128 == 0) };
        }
        if self.full.holds(value) {
            return same;
        }
        let Some(op) = func.def_op(value) else { return Run::Varied };
        if !self.own.contains(&value) && !matches!(op, Op::Arange { .. } | Op::Broadcast { .. }) {
            return Run::Varied;
        }
        let mut look = |operand: Value| if func.ty(operand).is_tile() { self.of(operand) } else { same };
        match *op {
            Op::Arange { ref start, .. } => {
                Run::Steps { by: 1, is_aligned: start.as_int().is_some_and(|start| start % runs.run as i128 == 0) }
            }
            Op::Broadcast { x } if func.ty(x).is_scalar() => Run::Same { is_aligned: runs.is_multiple(x, self.demands, 8) },
            Op::Unary { op: UnaryOp::Neg, x } if is_index_tile(func, value) => match look(x) {
                Run::Steps { by, is_aligned } => Run::Steps { by: by.wrapping_neg(), is_aligned },
                other => other,
            },
            Op::Binary { op: op @ (BinaryOp::Div | BinaryOp::Rem), lhs, rhs } if is_index_tile(func, value) => {
                let (dividend, divisor) = (look(lhs), divisor(func, rhs));
                match (dividend, divisor) {
                    (Run::Same { .. }, Some(_)) => same,
                    (Run::Ends, Some(_)) => Run::Ends,
                    (Run::Steps { by: 1, is_aligned }, Some(divisor)) if runs.indices.contains(&value) => {
                        let is_flat = self.facts.get(func, lhs).is_some();
                        if is_flat && runs.grant == Grant::Collect && (!is_aligned || matches!(divisor, Divisor::Constant(_))) {
                            self.demands.add_other(divisor, runs.run);
                        }
                        let demanded = match is_flat {
                            true => Some(Grant::Divisors),
                            false => self.taken_apart.contains(&(lhs, divisor)).then_some(Grant::Inner),
                        };
                        if !is_aligned || !runs.is_multiple_divisor(divisor, demanded, self.demands) {
                            let has_ends = op == BinaryOp::Div && is_flat && runs.grant == Grant::Long;
                            if has_ends && self.demands.is_long(divisor, runs.run) { Run::Ends } else { Run::Varied }
                        } else if op == BinaryOp::Div {
                            same
                        } else {
                            Run::Steps { by: 1, is_aligned: true }
                        }
                    }
                    _ => Run::Varied,
                }
            }
            Op::Binary { op, lhs, rhs } if is_index_tile(func, value) => runs.combined(op, (look(lhs), lhs), (look(rhs), rhs)),
            Op::Compare { op, lhs, rhs } => match (look(lhs), look(rhs)) {
                (Run::Same { .. }, Run::Same { .. }) => same,
                (Run::Steps { by: 1, is_aligned: true }, Run::Same { is_aligned: true })
                    if matches!(op, CompareOp::Lt | CompareOp::Ge) && is_index_tile(func, lhs) =>
                {
                    same
                }
                _ => Run::Varied,
            },
            Op::Load { base, offset, mask, other, .. } => {
                let is_same = [mask, other].into_iter().flatten().all(|operand| matches!(look(operand), Run::Same { .. }));
                match look(offset) {
                    Run::Same { .. } if is_same && self.facts.get(func, offset).is_none() => same,
                    // Nothing writes such a tensor between two loads.
                    Run::Ends if is_same && matches!(func.ty(base), Type::Pointer { mutable: false, .. }) => Run::Ends,
                    _ => Run::Varied,
                }
            }
            Op::Store { .. } | Op::Atomic { .. } => Run::Varied,
            ref op => {
                let mut all = op.is_pure();
                op.for_each_operand(&mut |operand| all &= matches!(look(operand), Run::Same { .. }));
                if all { same } else { Run::Varied }
            }
        }
    }
}
