//! Evaluation of a plan: the known parts of offsets and masks, for the scalar arguments and the grid of one launch.

use crate::conflicts::plan::{Plan, Source, Step};
use crate::conflicts::sum::{Sum, Variable, Variables};
use kernel_lang::dtype::Dtype;
use kernel_lang::ir::{BinaryOp, CompareOp, ConstExpr, Handle, Op, UnaryOp, Value};
use kernel_lang::scalar::{self, Scalar};

/// The knowledge about a value.
#[derive(Clone, Debug, Default)]
pub(super) enum Known {
    #[default]
    Nothing,
    /// An integer: the minimum of these sums, nearly always of one.
    Least(Vec<Sum>),
    /// A `bool`: where it holds, none of these sums is positive.
    NonePositive(Vec<Sum>),
}

impl Known {
    /// The sum that equals the integer.
    pub(super) fn exact(&self) -> Option<&Sum> {
        match self {
            Known::Least(sums) if let [sum] = &sums[..] => Some(sum),
            _ => None,
        }
    }

    fn is(sum: Sum) -> Known {
        Known::Least(vec![sum])
    }

    /// Maps every sum by a function that may fail.
    fn map(&self, f: impl Fn(&Sum) -> Option<Sum>) -> Known {
        match self {
            Known::Nothing => Known::Nothing,
            Known::Least(sums) => sums.iter().map(f).collect::<Option<_>>().map_or(Known::Nothing, Known::Least),
            Known::NonePositive(sums) => Known::NonePositive(sums.iter().filter_map(f).collect()),
        }
    }
}

/// The maximum number of conditions of a mask that are used.
const MOST_LIMITS: usize = 12;

/// The values of one launch.
pub(super) struct Launch<'a> {
    pub(super) words: &'a [u64],
    pub(super) grid: [u32; 3],
    pub(super) variables: Variables,
    /// The program's coordinate along each axis.
    programs: [Sum; 3],
    known: Vec<Known>,
    /// The scalars that are the same in all programs.
    constants: Vec<Option<Scalar>>,
}

impl Launch<'_> {
    /// Evaluates every step of a plan.
    pub(super) fn of<'a>(plan: &Plan, words: &'a [u64], grid: [u32; 3]) -> Launch<'a> {
        let mut variables = Variables::default();
        let programs = grid.map(|count| variables.add(count.into()));
        let mut launch = Launch { words, grid, variables, programs, known: Vec::new(), constants: Vec::new() };
        for step in &plan.steps {
            let constant = launch.constant(step);
            let known = match constant {
                Some(constant) => known_constant(constant),
                None => launch.known(step, &plan.steps).unwrap_or_default(),
            };
            launch.known.push(launch.checked(known, step));
            launch.constants.push(constant);
        }
        launch
    }

    pub(super) fn get(&self, step: usize) -> &Known {
        &self.known[step]
    }

    /// The variables that distinguish programs.
    pub(super) fn program_variables(&self) -> Vec<Variable> {
        let whole = self.programs.iter().flat_map(|program| &program.terms);
        whole.flat_map(|(variable, _)| self.variables.parts(*variable)).collect()
    }

    /// Discards an integer that the kernel's type may not hold, because the kernel's arithmetic wraps there. The index along an axis of
    /// extent 1 is 0.
    fn checked(&self, mut known: Known, step: &Step) -> Known {
        match &mut known {
            Known::Nothing => {}
            Known::Least(sums) => {
                let axes = sums.iter_mut().flat_map(|sum| sum.axes.iter_mut().zip(&step.extents));
                axes.filter(|(_, extent)| **extent == 1).for_each(|(coefficient, _)| *coefficient = 0);
                if !sums.iter().all(|sum| self.variables.fits(sum, &step.extents, step.dtype)) {
                    return Known::Nothing;
                }
            }
            Known::NonePositive(sums) => sums.truncate(MOST_LIMITS),
        }
        known
    }

    fn of_value(&self, value: Value) -> &Known {
        &self.known[value.index()]
    }

    /// The value of a scalar that is the same in all programs.
    fn constant(&self, step: &Step) -> Option<Scalar> {
        let operand = |value: Value| self.constants[value.index()];
        let op = match &step.source {
            _ if !step.extents.is_empty() => return None,
            Source::Word(word) => return Some(Scalar::from_bits(step.dtype, self.words[*word])),
            Source::Op(op) => op,
            Source::Iteration { .. } | Source::Moving { .. } | Source::Unknown => return None,
        };
        match op {
            Op::Const { value } => Scalar::from_const(value, step.dtype),
            Op::NumPrograms { axis } => Some(Scalar::from_bits(step.dtype, self.grid[*axis as usize].into())),
            Op::Unary { op, x } => scalar::unary(*op, operand(*x)?),
            Op::Binary { op, lhs, rhs } => scalar::binary(*op, operand(*lhs)?, operand(*rhs)?),
            Op::Compare { op, lhs, rhs } => scalar::compare(*op, operand(*lhs)?, operand(*rhs)?),
            Op::Select { cond, on_true, on_false } => scalar::select(operand(*cond)?, operand(*on_true)?, operand(*on_false)?),
            Op::Cast { x } => Some(scalar::cast(operand(*x)?, step.dtype)),
            Op::Bitcast { x } => scalar::bitcast(operand(*x)?, step.dtype),
            _ => None,
        }
    }

    /// `None` means [`Known::Nothing`].
    fn known(&mut self, step: &Step, steps: &[Step]) -> Option<Known> {
        let op = match &step.source {
            Source::Unknown => return None,
            Source::Word(_) => return None,
            Source::Iteration { lower, upper, step } => return self.iteration(*lower, *upper, *step),
            Source::Moving { start, step, falls, iteration } => {
                let (start, iteration) = (self.known[*start].exact()?, self.known[*iteration].exact()?);
                let each = self.known[*step].exact()?.as_constant()?;
                let iteration = Sum { axes: vec![0; start.axes.len()], ..iteration.clone() };
                return Some(Known::is(start.plus(&iteration, if *falls { each.checked_neg()? } else { each })?));
            }
            Source::Op(op) => op,
        };
        let rank = step.extents.len();
        match op {
            Op::Const { value: ConstExpr::Int(value) } => Some(Known::is(Sum::constant(*value, rank))),
            Op::ProgramId { axis } => Some(Known::is(self.programs[*axis as usize].clone())),
            Op::Arange { start, .. } => Some(Known::is(Sum { constant: start.as_int()?, terms: Vec::new(), axes: vec![1] })),
            Op::Broadcast { x } => Some(self.of_value(*x).map(|sum| {
                // An axis of extent 1 has no coefficient.
                let axes = if sum.axes.is_empty() { vec![0; rank] } else { sum.axes.clone() };
                (axes.len() == rank).then(|| Sum { axes, ..sum.clone() })
            })),
            Op::ExpandDims { x, axis } => Some(self.of_value(*x).map(|sum| {
                let mut sum = sum.clone();
                sum.axes.insert(*axis as usize, 0);
                Some(sum)
            })),
            Op::Reshape { x } => {
                let from = &steps[x.index()].extents;
                // Only axes of extent 1 are added or removed, so the other axes keep their order.
                let long = |extents: &[usize]| extents.iter().copied().filter(|extent| *extent > 1).collect::<Vec<_>>();
                (long(from) == long(&step.extents)).then_some(())?;
                Some(self.of_value(*x).map(|sum| {
                    let mut own = sum.axes.iter().zip(from).filter(|(_, extent)| **extent > 1).map(|(axis, _)| *axis);
                    let axes = step.extents.iter().map(|extent| if *extent > 1 { own.next().unwrap_or(0) } else { 0 }).collect();
                    Some(Sum { axes, ..sum.clone() })
                }))
            }
            Op::Permute { x, order } => Some(self.of_value(*x).map(|sum| {
                let axes = order.iter().map(|axis| sum.axes[*axis as usize]).collect();
                Some(Sum { axes, ..sum.clone() })
            })),
            Op::Flip { x, axis } => Some(self.of_value(*x).map(|sum| {
                let (mut sum, axis) = (sum.clone(), *axis as usize);
                sum.constant = sum.constant.checked_add(sum.axes[axis].checked_mul(step.extents[axis] as i128 - 1)?)?;
                sum.axes[axis] = sum.axes[axis].checked_neg()?;
                Some(sum)
            })),
            // Only between integers; the result must hold the number.
            Op::Cast { x } => Some(self.of_value(*x).clone()).filter(|x| matches!(x, Known::Least(_))),
            Op::Unary { op: UnaryOp::Neg, x } => Some(Known::is(self.of_value(*x).exact()?.times(-1)?)),
            Op::Select { cond, on_true, on_false } => {
                let cond = self.constants[cond.index()]?;
                Some(self.of_value(if cond.bits() != 0 { *on_true } else { *on_false }).clone())
            }
            Op::Binary { op: BinaryOp::And, lhs, rhs } if step.dtype == Dtype::Bool => {
                let both = [self.of_value(*lhs), self.of_value(*rhs)];
                Some(Known::NonePositive(both.into_iter().flat_map(Known::limits).cloned().collect()))
            }
            Op::Binary { op, lhs, rhs } => self.binary(*op, *lhs, *rhs, step),
            Op::Compare { op, lhs, rhs } => self.compare(*op, *lhs, *rhs),
            _ => None,
        }
    }

    fn binary(&mut self, op: BinaryOp, lhs: Value, rhs: Value, step: &Step) -> Option<Known> {
        let (left, right) = (self.of_value(lhs), self.of_value(rhs));
        let constant = |known: &Known| known.exact().and_then(Sum::as_constant);
        match op {
            BinaryOp::Add if right.exact().is_none() => Some(right.map(|sum| sum.plus(left.exact()?, 1))),
            BinaryOp::Add => Some(left.map(|sum| sum.plus(right.exact()?, 1))),
            BinaryOp::Sub => Some(left.map(|sum| sum.plus(right.exact()?, -1))),
            BinaryOp::Min => match (left, right) {
                (Known::Least(left), Known::Least(right)) => Some(Known::Least(left.iter().chain(right).cloned().collect())),
                _ => None,
            },
            BinaryOp::Mul => match (constant(left), constant(right)) {
                (_, Some(factor)) => Some(Known::is(left.exact()?.times(factor)?)),
                (Some(factor), _) => Some(Known::is(right.exact()?.times(factor)?)),
                _ => None,
            },
            BinaryOp::Shl => {
                let amount = constant(right).filter(|amount| (0..step.dtype.bits().into()).contains(amount))?;
                Some(Known::is(left.exact()?.times(1 << amount)?))
            }
            BinaryOp::Div | BinaryOp::Rem => {
                let divisor = constant(right).filter(|divisor| *divisor > 0)?;
                let sum = left.exact()?.clone();
                self.variables.range(&sum, &step.extents).filter(|(low, _)| *low >= 0)?;
                let (quotient, remainder) = self.variables.divided(&sum, &step.extents, divisor)?;
                Some(Known::is(if op == BinaryOp::Div { quotient } else { remainder }))
            }
            _ => None,
        }
    }

    /// The knowledge that follows if a comparison holds.
    fn compare(&self, op: CompareOp, lhs: Value, rhs: Value) -> Option<Known> {
        let (lhs, rhs) = if matches!(op, CompareOp::Gt | CompareOp::Ge) { (rhs, lhs) } else { (lhs, rhs) };
        let (Known::Least(_), Known::Least(bounds)) = (self.of_value(lhs), self.of_value(rhs)) else { return None };
        let sum = self.of_value(lhs).exact()?;
        let above = |bound: &Sum| sum.plus(bound, -1);
        let one = Sum::constant(1, sum.axes.len());
        Some(Known::NonePositive(match op {
            CompareOp::Lt | CompareOp::Gt => bounds.iter().filter_map(|bound| above(bound)?.plus(&one, 1)).collect(),
            CompareOp::Le | CompareOp::Ge => bounds.iter().filter_map(above).collect(),
            CompareOp::Eq => {
                let difference = above(self.of_value(rhs).exact()?)?;
                vec![difference.times(-1)?, difference]
            }
            CompareOp::Ne => return None,
        }))
    }

    /// The number of completed iterations of a loop.
    fn iteration(&mut self, lower: usize, upper: usize, step: usize) -> Option<Known> {
        let lower = self.known[lower].exact()?;
        let step = self.known[step].exact()?.as_constant().filter(|step| *step > 0)?;
        let Known::Least(uppers) = &self.known[upper] else { return None };
        // Whatever the lower bound, the last index is below each of the upper bounds.
        let spans = uppers.iter().filter_map(|upper| Some(self.variables.range(&upper.plus(lower, -1)?, &[])?.1));
        let iterations = (spans.min()?.max(1) - 1) / step + 1;
        Some(Known::is(self.variables.add(iterations)))
    }
}

impl Known {
    /// Sums that are not positive where the `bool` holds.
    pub(super) fn limits(&self) -> &[Sum] {
        match self {
            Known::NonePositive(limits) => limits,
            _ => &[],
        }
    }
}

/// The knowledge about a scalar that is the same in all programs.
fn known_constant(constant: Scalar) -> Known {
    match constant.to_const() {
        ConstExpr::Int(number) => Known::is(Sum::constant(number, 0)),
        // `false` holds nowhere: 1 is positive.
        ConstExpr::Bool(false) => Known::NonePositive(vec![Sum::constant(1, 0)]),
        ConstExpr::Bool(true) => Known::NonePositive(Vec::new()),
        _ => Known::Nothing,
    }
}
