//! The host's side of launch values: reads them from a PTX text, and computes them for a launch.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::ops::Range;

use super::known::Known;
use super::persistent_entry::split_entries;
use super::{END, HEADER, Unused, axes, count};
use crate::dtype::Dtype;
use crate::ir::{BinaryOp, CompareOp, Function, Op, Region, Stage, Type, UnaryOp, Value, parse, verify};
use crate::scalar::Scalar;

/// The launch values of a variant.
#[derive(Clone, Debug)]
pub struct LaunchValues {
    steps: Vec<Step>,
    values: Vec<Requested>,
    /// For each argument word, the bits on which the values depend.
    asked: Vec<u64>,
    /// What the PTX states of the shared memory.
    shared: Vec<Shared>,
}

/// The shared memory of a CTA if some conditions are false in all programs.
#[derive(Clone, PartialEq, Debug)]
struct Shared {
    bytes: u32,
    /// The parameters of each condition.
    conditions: Vec<Range<usize>>,
}

/// A value that a launch passes.
#[derive(Clone, Debug)]
struct Requested {
    step: usize,
    /// The axes on whose program ids it depends.
    axes: Vec<u32>,
    dtype: Dtype,
}

/// The computation of one value from earlier ones, which are named by their index.
#[derive(Clone, Copy, Debug)]
struct Step {
    dtype: Dtype,
    op: StepOp,
}

#[derive(Clone, Copy, Debug)]
enum StepOp {
    Const(Scalar),
    /// An argument word.
    Word(usize),
    ProgramId(usize),
    NumPrograms(usize),
    Unary(UnaryOp, usize),
    Binary(BinaryOp, [usize; 2]),
    Compare(CompareOp, [usize; 2]),
    Fma([usize; 3]),
    Select([usize; 3]),
    Cast(usize),
    Bitcast(usize),
}

impl LaunchValues {
    /// Reads the values that a PTX text states for its usual entry; `None` if it states none. [`PersistentEntry::of_ptx`](super::PersistentEntry::of_ptx) reads those of the
    /// other entry.
    ///
    /// # Errors
    /// If the comment is not one that the compiler writes.
    pub fn of_ptx(ptx: &str) -> Result<Option<LaunchValues>, String> {
        LaunchValues::of_part(split_entries(ptx).0)
    }

    /// Reads the values of one entry from its part of a PTX text.
    pub(super) fn of_part(part: &str) -> Result<Option<LaunchValues>, String> {
        let Some((above, below)) = part.split_once(HEADER) else { return Ok(None) };
        let mut text = String::new();
        for line in below.lines().skip(1) {
            let content = line.strip_prefix("// ").ok_or("the comment with the launch values has no end")?;
            let _ = writeln!(text, "{content}");
            if line == END {
                let values = LaunchValues::of_kernel(&text).map_err(|error| format!("the comment with the launch values: {error}"))?;
                return Ok(Some(values.with_unused(above)));
            }
        }
        Err("the comment with the launch values has no end".to_owned())
    }

    fn of_kernel(text: &str) -> Result<LaunchValues, String> {
        let func = parse(text).map_err(|error| error.to_string())?;
        verify(&func, Stage::Tile).map_err(|violations| violations.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))?;
        match func.region(func.body).insts.first().map(|inst| &func.inst(*inst).op) {
            Some(Op::LaunchValue { compute }) => Ok(LaunchValues::of_region(&func, *compute)),
            _ => Err("it has no `launch_value`".to_owned()),
        }
    }

    fn of_region(func: &Function, compute: Region) -> LaunchValues {
        let mut values = LaunchValues { steps: Vec::new(), values: Vec::new(), asked: Vec::new(), shared: Vec::new() };
        let mut words = 0;
        // The step of a scalar; for a pointer, the number of its first word.
        let mut steps: HashMap<Value, usize> = HashMap::new();
        for param in &func.params {
            match func.ty(param.value) {
                Type::Pointer { .. } => {
                    steps.insert(param.value, words);
                    words += 2;
                }
                ty => {
                    steps.insert(param.value, values.push(ty.dtype(), StepOp::Word(words)));
                    words += 1;
                }
            }
        }
        for inst in &func.region(compute).insts {
            let data = func.inst(*inst);
            let step = |value: &Value| steps[value];
            let op = match &data.op {
                Op::Const { value } => {
                    let value = Scalar::from_const(value, func.ty(data.results[0]).dtype());
                    StepOp::Const(value.expect("a verified constant has its type"))
                }
                Op::ProgramId { axis } => StepOp::ProgramId(*axis as usize),
                Op::NumPrograms { axis } => StepOp::NumPrograms(*axis as usize),
                Op::Address { base } => StepOp::Word(step(base)),
                Op::Length { base } => StepOp::Word(step(base) + 1),
                Op::Unary { op, x } => StepOp::Unary(*op, step(x)),
                Op::Binary { op: BinaryOp::Sub, lhs, rhs } => match values.divided([lhs, rhs].map(step)) {
                    Some(operands) => StepOp::Binary(BinaryOp::Rem, operands),
                    None => StepOp::Binary(BinaryOp::Sub, [lhs, rhs].map(step)),
                },
                Op::Binary { op, lhs, rhs } => StepOp::Binary(*op, [lhs, rhs].map(step)),
                Op::Compare { op, lhs, rhs } => StepOp::Compare(*op, [lhs, rhs].map(step)),
                Op::Fma { a, b, c } => StepOp::Fma([a, b, c].map(step)),
                Op::Select { cond, on_true, on_false } => StepOp::Select([cond, on_true, on_false].map(step)),
                Op::Cast { x } => StepOp::Cast(step(x)),
                Op::Bitcast { x } => StepOp::Bitcast(step(x)),
                op => {
                    debug_assert!(matches!(op, Op::Yield { .. }), "a verified launch value has no other ops");
                    continue;
                }
            };
            let result = func.result(*inst);
            let number = values.push(func.ty(result).dtype(), op);
            steps.insert(result, number);
        }
        let requested = |value: &Value| Requested { step: steps[value], axes: axes(func, *value), dtype: func.ty(*value).dtype() };
        values.values = func.yielded(compute).iter().map(requested).collect();
        values.asked = values.asked_bits(words);
        values
    }

    /// Adds what the text in front of the values states of the shared memory.
    fn with_unused(mut self, above: &str) -> LaunchValues {
        let mut first = 0;
        let parameters: Vec<Option<Range<usize>>> = self
            .values
            .iter()
            .map(|value| {
                let own = first..first + count(&value.axes);
                first = own.end;
                Some(own).filter(|_| value.dtype == Dtype::Bool)
            })
            .collect();
        let stated = above.lines().filter_map(|line| Unused::of_line(line.strip_prefix("// ")?));
        let of_parameters = |Unused { bytes, falses }: Unused| {
            let conditions = falses.iter().map(|number| parameters.get(*number).cloned().flatten()).collect::<Option<_>>()?;
            Some(Shared { bytes, conditions })
        };
        self.shared = stated.filter_map(of_parameters).collect();
        self
    }

    /// The bytes of shared memory that a CTA uses in a launch with these [`LaunchValues::parameters`], if they are fewer than those of the variant.
    #[must_use]
    pub fn shared_bytes(&self, parameters: &[u64]) -> Option<u32> {
        let is_false = |condition: &Range<usize>| match parameters.get(condition.clone()) {
            Some([value]) => *value == 0,
            // False in every program that is not below the bounds, and no program is below them.
            Some([bounds @ .., 1]) => bounds.contains(&0),
            _ => false,
        };
        self.shared.iter().filter(|shared| shared.conditions.iter().all(is_false)).map(|shared| shared.bytes).min()
    }

    /// `x` and `y` if the difference is `x - x / y * y`, which is the remainder. As a difference, its range would be that of `x`.
    fn divided(&self, [lhs, rhs]: [usize; 2]) -> Option<[usize; 2]> {
        let StepOp::Binary(BinaryOp::Mul, factors) = self.steps[rhs].op else { return None };
        let of = |quotient: usize, divisor: usize| match self.steps[quotient].op {
            StepOp::Binary(BinaryOp::Div, [x, y]) if x == lhs && y == divisor && self.steps[x].dtype.is_int() => Some([x, y]),
            _ => None,
        };
        of(factors[0], factors[1]).or_else(|| of(factors[1], factors[0]))
    }

    fn push(&mut self, dtype: Dtype, op: StepOp) -> usize {
        self.steps.push(Step { dtype, op });
        self.steps.len() - 1
    }

    /// The number of parameters that a launch passes after the kernel's own.
    pub fn parameter_count(&self) -> usize {
        self.values.iter().map(|value| count(&value.axes)).sum()
    }

    /// The type of each of these parameters.
    pub fn parameter_types(&self) -> impl Iterator<Item = Dtype> {
        let types = |value: &Requested| {
            let dtype = if value.dtype == Dtype::Bool { Dtype::U32 } else { value.dtype };
            std::iter::repeat_n(dtype, count(&value.axes))
        };
        self.values.iter().flat_map(types)
    }

    /// Is the first value, a `bool`, true in every program of a launch with these [`LaunchValues::parameters`] and this number of programs along each axis?
    pub fn is_first_true(&self, parameters: &[u64], grid: [u32; 3]) -> bool {
        let Some(Requested { axes, dtype: Dtype::Bool, .. }) = self.values.first() else { return false };
        match &axes[..] {
            [] => parameters.first() == Some(&1),
            axes => axes.iter().zip(parameters).all(|(axis, bound)| *bound >= u64::from(grid[*axis as usize])),
        }
    }

    /// Is the first value a `bool`?
    pub(super) fn begins_with_bool(&self) -> bool {
        self.values.first().is_some_and(|value| value.dtype == Dtype::Bool)
    }

    /// The type of the value that this parameter passes. `None` if the value depends on program ids, or if there is no such parameter.
    pub(super) fn uniform(&self, parameter: usize) -> Option<Dtype> {
        let types = |value: &Requested| std::iter::repeat_n(value.axes.is_empty().then_some(value.dtype), count(&value.axes));
        self.values.iter().flat_map(types).nth(parameter).flatten()
    }

    /// The bytes of these parameters, and their [`LaunchValues::shared_bytes`], for code that launches PTX without the runtime. `params` are the bytes of the kernel's
    /// own parameters; `grid` is the number of programs along each axis.
    ///
    /// # Errors
    /// If `params` are fewer than the kernel has.
    pub fn bytes(&self, params: &[Vec<u8>], grid: [u32; 3]) -> Result<(Vec<Vec<u8>>, Option<u32>), String> {
        if params.len() < self.asked.len() {
            return Err(format!("the launch values are about {} parameters, and {} are given", self.asked.len(), params.len()));
        }
        let word = |bytes: &Vec<u8>| bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
        let words: Vec<u64> = params.iter().map(word).collect();
        let bytes = |(word, dtype): (u64, Dtype)| word.to_le_bytes()[..dtype.bytes()].to_vec();
        let parameters = self.parameters(&words, grid);
        let shared_bytes = self.shared_bytes(&parameters);
        Ok((parameters.into_iter().zip(self.parameter_types()).map(bytes).collect(), shared_bytes))
    }

    /// For each argument word, the bits on which the values depend. Launches that agree in these and in the grid have the same parameters.
    pub fn asked(&self) -> &[u64] {
        &self.asked
    }

    /// The parameters for these argument words and this number of programs along each axis, at least 1: the bits of each, zero-extended.
    ///
    /// # Panics
    /// If there are fewer words than the kernel has.
    pub fn parameters(&self, words: &[u64], grid: [u32; 3]) -> Vec<u64> {
        let whole = grid.map(|programs| 0..programs);
        let values = self.evaluate(words, grid, &whole);
        let mut bounds: Vec<[u32; 3]> = values.iter().map(|value| if value.is(true) { grid } else { [0; 3] }).collect();
        // A condition may fail in the last programs of one or more axes. Few axes first.
        let mut subsets: Vec<u32> = (1..8).collect();
        subsets.sort_by_key(|subset| subset.count_ones());
        for subset in subsets {
            let is_among = |axis: u32| subset >> axis & 1 == 1;
            let asks = |bounds: &[u32; 3], value: &Requested| {
                *bounds == [0; 3] && (0..3).all(|axis| !is_among(axis) || value.axes.contains(&axis))
            };
            let fewer = [0, 1, 2].map(|axis| grid[axis as usize] - u32::from(is_among(axis)));
            if fewer.contains(&0) || !bounds.iter().zip(&self.values).any(|(bounds, value)| asks(bounds, value)) {
                continue;
            }
            let values = self.evaluate(words, grid, &fewer.map(|programs| 0..programs));
            for (index, value) in values.into_iter().enumerate() {
                if value.is(true) && asks(&bounds[index], &self.values[index]) {
                    bounds[index] = fewer;
                }
            }
        }
        // What is known in the programs from a bound of an axis on.
        let mut beyond: HashMap<(u32, u32), Vec<Known>> = HashMap::new();
        let mut fails_beyond = |index: usize, axis: u32, bound: u32| {
            let values = beyond.entry((axis, bound)).or_insert_with(|| {
                let mut programs = whole.clone();
                programs[axis as usize].start = bound;
                self.evaluate(words, grid, &programs)
            });
            values[index].is(false)
        };
        let mut parameters = Vec::with_capacity(self.parameter_count());
        for (index, (value, requested)) in values.iter().zip(&self.values).enumerate() {
            if requested.axes.is_empty() {
                parameters.push(value.value().expect("a value that depends on no program id is exact").bits());
                continue;
            }
            let bound = |axis: &u32| bounds[index][*axis as usize];
            parameters.extend(requested.axes.iter().map(|axis| u64::from(bound(axis))));
            // Other programs have an id that is not below the bound of an axis.
            let mut open = requested.axes.iter().filter(|axis| bound(axis) < grid[**axis as usize]);
            parameters.push(open.all(|axis| fails_beyond(index, *axis, bound(axis))).into());
        }
        parameters
    }

    /// What is known of each requested value in all programs with these ids.
    fn evaluate(&self, words: &[u64], grid: [u32; 3], programs: &[Range<u32>; 3]) -> Vec<Known> {
        let mut values: Vec<Known> = Vec::with_capacity(self.steps.len());
        for Step { dtype, op } in &self.steps {
            let at = |step: usize| values[step];
            let from = |step: usize| self.steps[step].dtype;
            let value = match *op {
                StepOp::Const(value) => Known::Exactly(value),
                StepOp::Word(word) => Known::Exactly(Scalar::from_bits(*dtype, words[word] & self.asked[word])),
                StepOp::ProgramId(axis) => Known::ids(programs[axis].clone()),
                StepOp::NumPrograms(axis) => Known::Exactly(Scalar::from_bits(*dtype, grid[axis].into())),
                StepOp::Unary(op, x) => at(x).unary(op, *dtype),
                StepOp::Binary(op, [lhs, rhs]) => at(lhs).binary(op, at(rhs), *dtype),
                StepOp::Compare(op, [lhs, rhs]) => at(lhs).compare(op, at(rhs)),
                StepOp::Fma([a, b, c]) => at(a).fma(at(b), at(c)),
                StepOp::Select([cond, on_true, on_false]) => at(cond).select(at(on_true), at(on_false), *dtype),
                StepOp::Cast(x) => at(x).cast(*dtype, from(x)),
                StepOp::Bitcast(x) => at(x).bitcast(*dtype),
            };
            values.push(value);
        }
        self.values.iter().map(|value| values[value.step]).collect()
    }

    /// The bits of each word on which the values depend. A test of alignment asks for the low bits of an address only.
    fn asked_bits(&self, words: usize) -> Vec<u64> {
        let mut asked = vec![0; words];
        let mut bits = vec![0u64; self.steps.len()];
        self.values.iter().for_each(|value| bits[value.step] = u64::MAX);
        for (index, Step { dtype, op }) in self.steps.iter().enumerate().rev() {
            let own = bits[index];
            if own == 0 {
                continue;
            }
            // Sums and products carry upwards only.
            let below = u64::MAX >> own.leading_zeros();
            let mut ask = |step: usize, asked: u64| bits[step] |= asked;
            match *op {
                StepOp::Word(word) => asked[word] |= own,
                StepOp::Const(_) | StepOp::ProgramId(_) | StepOp::NumPrograms(_) => {}
                StepOp::Binary(BinaryOp::And, [lhs, rhs]) => {
                    let mask = |step: usize| match self.steps[step].op {
                        StepOp::Const(mask) => own & mask.bits(),
                        _ => own,
                    };
                    ask(lhs, mask(rhs));
                    ask(rhs, mask(lhs));
                }
                StepOp::Binary(BinaryOp::Or | BinaryOp::Xor, operands) => operands.into_iter().for_each(|operand| ask(operand, own)),
                StepOp::Binary(BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul, operands) if dtype.is_int() => {
                    operands.into_iter().for_each(|operand| ask(operand, below));
                }
                StepOp::Unary(_, x) | StepOp::Cast(x) | StepOp::Bitcast(x) => ask(x, u64::MAX),
                StepOp::Binary(_, operands) | StepOp::Compare(_, operands) => {
                    operands.into_iter().for_each(|operand| ask(operand, u64::MAX))
                }
                StepOp::Fma(operands) | StepOp::Select(operands) => operands.into_iter().for_each(|operand| ask(operand, u64::MAX)),
            }
        }
        asked
    }
}
