//! Tests that the host evaluates at launch, for all programs at once.
//!
//! A kernel asks before its fast path whether every element of its tiles is in bounds, whether addresses are aligned, and so on. In almost every launch the
//! answer is the same in all programs, or in all but the last ones of an axis. So the pass `test_at_launch` makes such a condition the region of a `launch_test`:
//!
//! ```text
//! %3 = launch_test () {
//!     %0 = program_id : i64
//!     %1 = mul %0, %columns : i64
//!     %2 = lt %1, %n : bool
//!     yield %2
//! } : bool
//! ```
//!
//! The code for a GPU takes the answer from parameters that follow the kernel's own, one for each axis of the grid on whose program id the region depends:
//! the region yields `true` in every program whose ids are below these bounds. Other programs evaluate the region. If it depends on no program id, one
//! parameter is the answer: 1 or 0.
//!
//! The PTX states the tests in a comment, as a kernel whose only ops with an effect are an `assert` for each test, so the text of a variant is all
//! that a launch needs. [`LaunchTests`] reads the comment and evaluates the tests. It computes, for each value, a range and the low bits that all programs share,
//! so it needs one pass over the ops for all programs of a launch. A second pass leaves out the last programs of an axis.

mod known;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::fmt::Write as _;

use crate::dtype::Dtype;
use crate::ir::rewrite::Substitution;
use crate::ir::{BinaryOp, CompareOp, ConstExpr, Function, Inst, Op, Region, Stage, Type, UnaryOp, Value, parse, verify};
use crate::location::Loc;
use crate::scalar::Scalar;
use known::Known;

/// The first line of the comment in the PTX.
const HEADER: &str = "// launch tests:";
/// The last line of the comment.
const END: &str = "// }";

/// The maximum number of parameters that a kernel has for its tests.
pub const MOST_PARAMETERS: usize = 24;

/// A test of a kernel, and its parameters.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Parameters {
    /// The number of the first parameter.
    pub(crate) first: usize,
    /// The axes with a bound, in order. Without any, the first parameter is the answer.
    pub(crate) axes: Vec<u32>,
}

impl Parameters {
    /// The number of parameters.
    pub(crate) fn count(&self) -> usize {
        self.axes.len().max(1)
    }
}

/// The name of a parameter in the PTX.
pub(crate) fn parameter_name(number: usize) -> String {
    format!("launch_{number}")
}

/// The parameters of each `launch_test`, by its result.
pub(crate) fn parameters(func: &Function) -> HashMap<Value, Parameters> {
    let mut next = 0;
    let mut found = HashMap::new();
    for (inst, region) in tests(func) {
        let parameters = Parameters { first: next, axes: axes(func, &func.region(region).insts) };
        next += parameters.count();
        found.insert(func.result(inst), parameters);
    }
    found
}

/// The number of parameters of all tests.
pub(crate) fn parameter_count(func: &Function) -> usize {
    parameters(func).values().map(Parameters::count).sum()
}

/// The ops `launch_test` of a kernel with their regions, in the order of the text.
fn tests(func: &Function) -> Vec<(Inst, Region)> {
    let test = |inst: Inst| match func.inst(inst).op {
        Op::LaunchTest { test } => Some((inst, test)),
        _ => None,
    };
    func.all_insts().into_iter().filter_map(test).collect()
}

/// The axes of the grid on whose program ids these ops depend.
pub(crate) fn axes(func: &Function, insts: &[Inst]) -> Vec<u32> {
    let axis = |inst: &Inst| match func.inst(*inst).op {
        Op::ProgramId { axis } => Some(axis),
        _ => None,
    };
    let mut axes: Vec<u32> = insts.iter().filter_map(axis).collect();
    axes.sort_unstable();
    axes.dedup();
    axes
}

/// The comment that states the tests of a kernel; empty if it has none.
pub(crate) fn comment(func: &Function) -> String {
    let tests = tests(func);
    if tests.is_empty() {
        return String::new();
    }
    let parameters = parameters(func);
    let mut host = func.clone();
    (host.name, host.contract, host.unchecked) = ("launch_tests".into(), false, false);
    host.files.clear();
    host.insts_mut(host.body).clear();
    // The tests share many ops.
    let mut known: Vec<Inst> = Vec::new();
    for (inst, region) in tests {
        let body = host.body;
        let mut copies = Substitution::new();
        for own in func.region(region).insts.iter().copied() {
            let data = func.inst(own);
            let mut op = data.op.clone();
            op.map_operands(&mut |value| copies.get(value));
            if let Op::Yield { values } = op {
                let own = &parameters[&func.result(inst)];
                let names: Vec<String> = (own.first..own.first + own.count()).map(parameter_name).collect();
                host.append(body, Op::Assert { cond: values[0], message: names.join(", "), assumed: false }, [], Loc::NONE);
                continue;
            }
            let ty = func.ty(data.results[0]);
            let copy = known.iter().copied().find(|copy| is_same(&host.inst(*copy).op, &op) && host.ty(host.result(*copy)) == ty);
            let copy = copy.unwrap_or_else(|| {
                known.push(host.append(body, op, [ty.clone()], Loc::NONE));
                known[known.len() - 1]
            });
            copies.insert(data.results[0], host.result(copy));
        }
    }
    host.append(host.body, Op::Return {}, [], Loc::NONE);
    let mut comment = format!("{HEADER}\n");
    for line in host.to_string().lines() {
        let _ = writeln!(comment, "// {line}");
    }
    comment.push('\n');
    comment
}

/// The bytes of the parameters that the PTX's launch tests add to those in `params`, for code that launches PTX without the runtime. `params` are the
/// bytes of the kernel's own parameters; `grid` is the number of programs along each axis.
///
/// # Errors
/// As [`LaunchTests::of_ptx`].
pub fn added_parameters(ptx: &str, params: &[Vec<u8>], grid: [u32; 3]) -> Result<Vec<Vec<u8>>, String> {
    let Some(tests) = LaunchTests::of_ptx(ptx)? else { return Ok(Vec::new()) };
    let word = |bytes: &Vec<u8>| bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
    let words: Vec<u64> = params.iter().map(word).collect();
    if words.len() < tests.asked.len() {
        return Err(format!("the launch tests are about {} parameters, and {} are given", tests.asked.len(), words.len()));
    }
    Ok(tests.parameters(&words, grid).into_iter().map(|parameter| parameter.to_le_bytes().to_vec()).collect())
}

/// Are two ops the same? Floats are compared by their bits.
fn is_same(one: &Op, other: &Op) -> bool {
    match (one, other) {
        (Op::Const { value: ConstExpr::Float(one) }, Op::Const { value: ConstExpr::Float(other) }) => one.to_bits() == other.to_bits(),
        _ => one == other,
    }
}

/// The launch tests of a variant.
#[derive(Clone, Debug)]
pub struct LaunchTests {
    steps: Vec<Step>,
    /// The steps whose values the tests ask for, with the axes that have bounds.
    tests: Vec<(usize, Vec<u32>)>,
    /// For each argument word, the bits on which the tests depend.
    asked: Vec<u64>,
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

impl LaunchTests {
    /// Reads the tests that a PTX text states; `None` if it states none.
    ///
    /// # Errors
    /// If the comment is not one that the compiler writes.
    pub fn of_ptx(ptx: &str) -> Result<Option<LaunchTests>, String> {
        let Some((_, below)) = ptx.split_once(HEADER) else { return Ok(None) };
        let mut text = String::new();
        for line in below.lines().skip(1) {
            let content = line.strip_prefix("// ").ok_or("the comment with the launch tests has no end")?;
            let _ = writeln!(text, "{content}");
            if line == END {
                return LaunchTests::of_kernel(&text).map(Some).map_err(|error| format!("the comment with the launch tests: {error}"));
            }
        }
        Err("the comment with the launch tests has no end".to_owned())
    }

    fn of_kernel(text: &str) -> Result<LaunchTests, String> {
        let func = parse(text).map_err(|error| error.to_string())?;
        verify(&func, Stage::Tile).map_err(|violations| violations.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))?;
        let mut words = 0;
        // The step of a scalar; for a pointer, the number of its first word.
        let mut known: HashMap<Value, usize> = HashMap::new();
        let mut tests = LaunchTests { steps: Vec::new(), tests: Vec::new(), asked: Vec::new() };
        for param in &func.params {
            match func.ty(param.value) {
                Type::Pointer { .. } => {
                    known.insert(param.value, words);
                    words += 2;
                }
                ty => {
                    known.insert(param.value, tests.push(ty.dtype(), StepOp::Word(words)));
                    words += 1;
                }
            }
        }
        let mut used: HashMap<usize, Vec<u32>> = HashMap::new();
        for inst in &func.region(func.body).insts {
            let data = func.inst(*inst);
            let step = |value: &Value| known[value];
            let op = match &data.op {
                Op::Assert { cond, .. } => {
                    let cond = step(cond);
                    let axes = used.get(&cond).cloned().unwrap_or_default();
                    tests.tests.push((cond, axes));
                    continue;
                }
                Op::Return {} => continue,
                Op::Const { value } => {
                    let value = Scalar::from_const(value, func.ty(func.result(*inst)).dtype()).ok_or("a constant has another type")?;
                    StepOp::Const(value)
                }
                Op::ProgramId { axis } => StepOp::ProgramId(*axis as usize),
                Op::NumPrograms { axis } => StepOp::NumPrograms(*axis as usize),
                Op::Address { base } => StepOp::Word(step(base)),
                Op::Length { base } => StepOp::Word(step(base) + 1),
                Op::Unary { op, x } if data.op.is_known_at_launch() => StepOp::Unary(*op, step(x)),
                Op::Binary { op, lhs, rhs } if data.op.is_known_at_launch() => StepOp::Binary(*op, [lhs, rhs].map(step)),
                Op::Compare { op, lhs, rhs } => StepOp::Compare(*op, [lhs, rhs].map(step)),
                Op::Fma { a, b, c } => StepOp::Fma([a, b, c].map(step)),
                Op::Select { cond, on_true, on_false } => StepOp::Select([cond, on_true, on_false].map(step)),
                Op::Cast { x } => StepOp::Cast(step(x)),
                Op::Bitcast { x } => StepOp::Bitcast(step(x)),
                op => return Err(format!("the host does not evaluate `{}`", op.name())),
            };
            let result = func.result(*inst);
            if !func.ty(result).is_scalar() {
                return Err(format!("`{}` is not a scalar", data.op.name()));
            }
            let mut axes: Vec<u32> = axes(&func, &[*inst]);
            data.op.for_each_operand(&mut |value| {
                if !func.ty(value).is_pointer() {
                    axes.extend(used.get(&known[&value]).into_iter().flatten());
                }
            });
            axes.sort_unstable();
            axes.dedup();
            let number = tests.push(func.ty(result).dtype(), op);
            used.insert(number, axes);
            known.insert(result, number);
        }
        tests.asked = tests.asked_bits(words);
        Ok(tests)
    }

    fn push(&mut self, dtype: Dtype, op: StepOp) -> usize {
        self.steps.push(Step { dtype, op });
        self.steps.len() - 1
    }

    /// The number of parameters that a launch passes behind the kernel's own.
    pub fn parameter_count(&self) -> usize {
        self.tests.iter().map(|(_, axes)| axes.len().max(1)).sum()
    }

    /// For each argument word, the bits on which the answers depend. Launches that agree in these and in the grid have the same answers.
    pub fn asked(&self) -> &[u64] {
        &self.asked
    }

    /// The parameters for these argument words and this number of programs along each axis, at least 1.
    ///
    /// # Panics
    /// If there are fewer words than the kernel has.
    pub fn parameters(&self, words: &[u64], grid: [u32; 3]) -> Vec<u32> {
        let answers = self.answers(words, grid);
        let mut bounds: Vec<Option<[u32; 3]>> = answers.iter().map(|answer| answer.then_some(grid)).collect();
        // The last programs of one or more axes may be those for which a test fails. Few axes first.
        let mut subsets: Vec<u32> = (1..8).collect();
        subsets.sort_by_key(|subset| subset.count_ones());
        for subset in subsets {
            let is_among = |axis: u32| subset >> axis & 1 == 1;
            let asks = |(bounds, (_, axes)): (&Option<[u32; 3]>, &(usize, Vec<u32>))| {
                bounds.is_none() && (0..3).all(|axis| !is_among(axis) || axes.contains(&axis))
            };
            let fewer = [0, 1, 2].map(|axis| grid[axis as usize] - u32::from(is_among(axis)));
            if fewer.contains(&0) || !bounds.iter().zip(&self.tests).any(asks) {
                continue;
            }
            let answers = self.evaluate(words, grid, fewer);
            for (index, answer) in answers.into_iter().enumerate() {
                if answer && asks((&bounds[index], &self.tests[index])) {
                    bounds[index] = Some(fewer);
                }
            }
        }
        let mut parameters = Vec::with_capacity(self.parameter_count());
        for (bounds, (_, axes)) in bounds.into_iter().zip(&self.tests) {
            match &axes[..] {
                [] => parameters.push(bounds.is_some().into()),
                axes => parameters.extend(axes.iter().map(|axis| bounds.map_or(0, |bounds| bounds[*axis as usize]))),
            }
        }
        parameters
    }

    fn answers(&self, words: &[u64], grid: [u32; 3]) -> Vec<bool> {
        self.evaluate(words, grid, grid)
    }

    /// Whether each test holds in all programs with ids below `programs`.
    fn evaluate(&self, words: &[u64], grid: [u32; 3], programs: [u32; 3]) -> Vec<bool> {
        let mut values: Vec<Known> = Vec::with_capacity(self.steps.len());
        for Step { dtype, op } in &self.steps {
            let at = |step: usize| values[step];
            let from = |step: usize| self.steps[step].dtype;
            let value = match *op {
                StepOp::Const(value) => Known::Exactly(value),
                StepOp::Word(word) => Known::Exactly(Scalar::from_bits(*dtype, words[word] & self.asked[word])),
                StepOp::ProgramId(axis) => Known::below(programs[axis]),
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
        self.tests.iter().map(|(step, _)| values[*step].is_true()).collect()
    }

    /// The bits of each word on which the tests depend. An alignment test asks for the low bits of an address only.
    fn asked_bits(&self, words: usize) -> Vec<u64> {
        let mut asked = vec![0; words];
        let mut bits = vec![0u64; self.steps.len()];
        self.tests.iter().for_each(|(step, _)| bits[*step] = u64::MAX);
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
                StepOp::Binary(_, operands) | StepOp::Compare(_, operands) => operands.into_iter().for_each(|operand| ask(operand, u64::MAX)),
                StepOp::Fma(operands) | StepOp::Select(operands) => operands.into_iter().for_each(|operand| ask(operand, u64::MAX)),
            }
        }
        asked
    }
}
