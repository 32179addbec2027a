//! The plan of a conflict check: the accesses that may conflict, and the values that determine their offsets and masks at a launch.

use std::collections::HashMap;

use kernel_lang::dtype::Dtype;
use kernel_lang::ir::{BinaryOp, ConstExpr, Def, Function, Handle, Inst, Op, Region, SideTable, UNKNOWN_LENGTH, Value};

/// The maximum number of enclosing conditions of an access that are used, the innermost first.
const MOST_CONDITIONS: usize = 4;

/// The maximum number of steps; further values are unknown.
const MOST_STEPS: usize = 2000;

/// The plan of a kernel.
#[derive(Debug, Default)]
pub(super) struct Plan {
    /// The values, in the order of their definition: operands are earlier steps.
    pub(super) steps: Vec<Step>,
    /// The accesses that may conflict, without duplicates.
    pub(super) sites: Vec<Site>,
    /// The site of each access of the kernel, in the order of the text, if the access may conflict.
    pub(super) site_of: Vec<Option<usize>>,
    pub(super) bases: Vec<Base>,
    /// The argument words that the steps read.
    pub(super) words: Vec<usize>,
    /// Whether different bases may point to the same memory.
    pub(super) unchecked: bool,
}

/// One value.
#[derive(Debug)]
pub(super) struct Step {
    pub(super) source: Source,
    pub(super) dtype: Dtype,
    pub(super) extents: Vec<usize>,
}

/// The definition of a value.
#[derive(Debug)]
pub(super) enum Source {
    /// An argument word.
    Word(usize),
    /// The number of completed iterations of a loop.
    Iteration {
        lower: usize,
        upper: usize,
        step: usize,
    },
    /// A value that grows or falls by a step in each iteration: the index of a loop, or an integer that the loop carries.
    Moving {
        start: usize,
        step: usize,
        falls: bool,
        iteration: usize,
    },
    /// An op whose operands are the numbers of their steps.
    Op(Op),
    Unknown,
}

/// The target of an access.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Base {
    /// A parameter: the word of its address, and the bytes of an element.
    Parameter { word: usize, width: usize },
    /// An address that the kernel computes.
    Address,
}

/// An access.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Site {
    pub(super) base: usize,
    pub(super) offset: usize,
    pub(super) mask: Option<usize>,
    /// Scalars that are true wherever the access runs.
    pub(super) conditions: Vec<usize>,
    pub(super) kind: Kind,
}

/// The kind of an access.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Kind {
    Load,
    Store,
    Atomic,
}

/// Computes the plan of a kernel, in linear time, and the number of each access in the order of the text. `words` are those of the kernel's
/// parameters.
pub(super) fn plan(func: &Function, words: &SideTable<Value, usize>) -> (Plan, SideTable<Inst, u32>) {
    let mut cx = Search { func, words, loops: HashMap::new(), step_of: SideTable::new(), waits: SideTable::new(), plan: Plan::default() };
    let accesses = cx.accesses();
    let mut bases: HashMap<Value, (usize, Uses)> = HashMap::new();
    for (inst, _) in &accesses {
        let Some((base, kind)) = access(func, *inst) else { continue };
        let number = bases.len();
        let (_, uses) = bases.entry(base).or_insert((number, Uses::default()));
        uses.plain |= kind != Kind::Atomic;
        uses.stored |= kind != Kind::Load;
    }
    cx.plan.unchecked = func.unchecked;
    cx.plan.bases = vec![Base::Address; bases.len()];
    for (base, (number, _)) in &bases {
        if func.param_index(*base).is_some() {
            cx.plan.bases[*number] = Base::Parameter { word: words[*base], width: func.ty(*base).dtype().bytes() };
        }
    }
    // Tensors are distinct, unless the kernel is `unchecked`.
    let is_any_stored = bases.values().any(|(_, uses)| uses.stored);
    let is_contested = |uses: &Uses| uses.plain && if func.unchecked { is_any_stored } else { uses.stored };
    let mut numbers = SideTable::new();
    let mut known: HashMap<Site, usize> = HashMap::new();
    for (inst, conditions) in accesses {
        let Some((base, kind)) = access(func, inst) else { continue };
        let (base, uses) = bases[&base];
        numbers[inst] = cx.plan.site_of.len() as u32;
        let Some(access) = func.inst(inst).op.access().filter(|_| is_contested(&uses)) else {
            cx.plan.site_of.push(None);
            continue;
        };
        let site = Site {
            base,
            offset: cx.step(access.offset),
            mask: access.mask.map(|mask| cx.step(mask)),
            conditions: conditions.into_iter().map(|condition| cx.step(condition)).collect(),
            kind,
        };
        let next = known.len();
        let number = *known.entry(site.clone()).or_insert(next);
        if number == next {
            cx.plan.sites.push(site);
        }
        cx.plan.site_of.push(Some(number));
    }
    (cx.plan, numbers)
}

/// How a tensor is used.
#[derive(Clone, Copy, Default)]
struct Uses {
    plain: bool,
    stored: bool,
}

fn access(func: &Function, inst: Inst) -> Option<(Value, Kind)> {
    let kind = match func.inst(inst).op {
        Op::Load { .. } => Kind::Load,
        Op::Store { .. } => Kind::Store,
        Op::Atomic { .. } => Kind::Atomic,
        _ => return None,
    };
    func.inst(inst).op.access().map(|access| (access.base, kind))
}

/// A loop.
#[derive(Clone, Copy)]
struct Loop<'a> {
    /// The lower bound, the upper bound and the step.
    bounds: [Value; 3],
    init: &'a [Value],
    /// The step with the number of completed iterations, if it exists already.
    iteration: Option<usize>,
}

struct Search<'a> {
    func: &'a Function,
    words: &'a SideTable<Value, usize>,
    /// The loops by their bodies.
    loops: HashMap<Region, Loop<'a>>,
    step_of: SideTable<Value, Option<usize>>,
    /// The values that wait, or waited, for the steps of their operands. A carried value that depends on itself is unknown.
    waits: SideTable<Value, bool>,
    plan: Plan,
}

impl Search<'_> {
    /// All accesses in the order of the text, each with its innermost enclosing conditions.
    fn accesses(&mut self) -> Vec<(Inst, Vec<Value>)> {
        let func = self.func;
        let mut accesses = HashMap::new();
        let mut regions: Vec<(Region, Vec<Value>)> = vec![(func.body, Vec::new())];
        while let Some((region, conditions)) = regions.pop() {
            for inst in &func.region(region).insts {
                match &func.inst(*inst).op {
                    Op::If { cond, then_region, else_region, .. } => {
                        let nearest = conditions.len().saturating_sub(MOST_CONDITIONS - 1);
                        regions.push((*then_region, [&conditions[nearest..], &[*cond]].concat()));
                        regions.push((*else_region, conditions.clone()));
                    }
                    Op::For { lower, upper, step, init, body, .. } => {
                        self.loops.insert(*body, Loop { bounds: [*lower, *upper, *step], init, iteration: None });
                        regions.push((*body, conditions.clone()));
                    }
                    op if op.access().is_some() => _ = accesses.insert(*inst, conditions.clone()),
                    op => op.for_each_region(&mut |inner| regions.push((inner, conditions.clone()))),
                }
            }
        }
        func.all_insts().into_iter().filter_map(|inst| accesses.remove_entry(&inst)).collect()
    }

    /// The step of a value, after those of its operands.
    fn step(&mut self, value: Value) -> usize {
        let mut stack = vec![value];
        while let Some(value) = stack.last().copied() {
            if self.step_of[value].is_some() {
                stack.pop();
                continue;
            }
            let mut operands = if self.plan.steps.len() < MOST_STEPS { self.operands(value) } else { None };
            self.waits[value] = true;
            let is_ready = |operand: &Value| self.step_of[*operand].is_some();
            if operands.iter().flatten().any(|operand| !is_ready(operand) && self.waits[*operand]) {
                operands = None;
            }
            let before = stack.len();
            stack.extend(operands.iter().flatten().filter(|operand| !is_ready(operand)));
            if stack.len() == before {
                let source = operands.map_or(Source::Unknown, |_| self.source(value));
                let ty = self.func.ty(value);
                self.plan.steps.push(Step { source, dtype: ty.dtype(), extents: ty.extents() });
                self.step_of[value] = Some(self.plan.steps.len() - 1);
            }
        }
        self.number(value)
    }

    fn number(&self, value: Value) -> usize {
        self.step_of[value].expect("operands have steps before what is made of them")
    }

    /// The values that determine a value; `None` if they give no knowledge.
    fn operands(&self, value: Value) -> Option<Vec<Value>> {
        let func = self.func;
        // A float gives knowledge only if it is the same in all programs.
        if func.ty(value).dtype().is_float() && func.ty(value).is_tile() {
            return None;
        }
        match func.def(value) {
            Def::Param(region, _) if region == func.body => Some(Vec::new()),
            Def::Param(region, 0) => self.loops.get(&region).map(|around| around.bounds.to_vec()),
            Def::Param(region, at) => {
                let around = self.loops.get(&region)?;
                let (step, _) = self.change(region, at)?;
                Some([&around.bounds[..], &[around.init[at - 1], step]].concat())
            }
            Def::Result(inst, _) => match &func.inst(inst).op {
                Op::Length { .. } => Some(Vec::new()),
                op @ (Op::Const { .. }
                | Op::ProgramId { .. }
                | Op::NumPrograms { .. }
                | Op::Arange { .. }
                | Op::Broadcast { .. }
                | Op::ExpandDims { .. }
                | Op::Reshape { .. }
                | Op::Permute { .. }
                | Op::Flip { .. }
                | Op::Cast { .. }
                | Op::Bitcast { .. }
                | Op::Select { .. }
                | Op::Unary { .. }
                | Op::Binary { .. }
                | Op::Compare { .. }) => {
                    let mut operands = Vec::new();
                    op.for_each_operand(&mut |operand| operands.push(operand));
                    Some(operands)
                }
                _ => None,
            },
        }
    }

    /// The value that each iteration adds to a carried value or, if the flag is true, subtracts from it. `None` for the index of a loop, at
    /// 0.
    fn change(&self, body: Region, at: usize) -> Option<(Value, bool)> {
        let carried = self.func.region(body).params[at];
        match self.func.def_op(*self.func.yielded(body).get(at.checked_sub(1)?)?)? {
            Op::Binary { op: BinaryOp::Add, lhs, rhs } if *lhs == carried => Some((*rhs, false)),
            Op::Binary { op: BinaryOp::Add, lhs, rhs } if *rhs == carried => Some((*lhs, false)),
            Op::Binary { op: BinaryOp::Sub, lhs, rhs } if *lhs == carried => Some((*rhs, true)),
            _ => None,
        }
    }

    /// The source of a value. Its [`Search::operands`] have steps.
    fn source(&mut self, value: Value) -> Source {
        let func = self.func;
        match func.def(value) {
            Def::Param(region, _) if region == func.body => self.word(self.words[value]),
            Def::Param(region, at) => {
                let Loop { bounds, init, iteration } = self.loops[&region];
                let [lower, upper, step] = bounds.map(|bound| self.number(bound));
                let iteration = iteration.unwrap_or_else(|| {
                    let source = Source::Iteration { lower, upper, step };
                    self.plan.steps.push(Step { source, dtype: Dtype::I64, extents: Vec::new() });
                    self.plan.steps.len() - 1
                });
                self.loops.insert(region, Loop { bounds, init, iteration: Some(iteration) });
                match self.change(region, at) {
                    Some((step, falls)) => Source::Moving { start: self.number(init[at - 1]), step: self.number(step), falls, iteration },
                    None => Source::Moving { start: lower, step, falls: false, iteration },
                }
            }
            Def::Result(inst, _) => match &func.inst(inst).op {
                Op::Length { base } if func.param_index(*base).is_some() => self.word(self.words[*base] + 1),
                Op::Length { .. } => Source::Op(Op::Const { value: ConstExpr::Int(UNKNOWN_LENGTH.into()) }),
                op => {
                    let mut op = op.clone();
                    op.map_operands(&mut |operand| Value::new(self.number(operand)));
                    Source::Op(op)
                }
            },
        }
    }

    fn word(&mut self, word: usize) -> Source {
        self.plan.words.push(word);
        Source::Word(word)
    }
}
