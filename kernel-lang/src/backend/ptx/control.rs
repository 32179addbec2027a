//! Branches and loops. Conditions are scalars with the same value in every thread of a warp, so no branch diverges. Only that of an `any_in_warp` differs
//! between warps, and nothing in its regions waits for other warps.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::analysis::polynomial::Polynomial;
use crate::dtype::Dtype;
use crate::ir::{Handle, Op, Region, Value};
use crate::launch_value::{self, Parameters, parameter_name};

use crate::backend::ptx::arithmetic::compare::PositionTest;
use crate::backend::ptx::arithmetic::elementwise::AXES;
use crate::backend::ptx::text::registers::{Class, Reg, asm};
use crate::backend::ptx::{Emitter, Lanes, arithmetic_type, memory_type};

impl Emitter<'_> {
    pub(super) fn control(&mut self, op: &Op, results: &[Value]) {
        // Wait once, for all paths.
        self.await_cluster();
        match op {
            Op::If { cond, then_region, else_region, .. } => self.branch(*cond, *then_region, *else_region, results),
            Op::For { lower, upper, step, init, body, .. } => self.counted_loop([*lower, *upper, *step], init, *body, results),
            Op::While { init, test, body } => self.while_loop(init, *test, *body, results),
            _ => unreachable!("`{}` holds no regions", op.name()),
        }
    }

    /// Emits a region in its own scope: addresses computed inside are not available outside.
    pub(super) fn scoped(&mut self, region: Region) {
        self.addresses.push(FxHashMap::default());
        self.slacks.push(FxHashMap::default());
        self.divisors.push(FxHashMap::default());
        self.region(region);
        self.addresses.pop();
        self.slacks.pop();
        self.divisors.pop();
    }

    /// Registers for a value that is assigned in several branches or iterations.
    pub(super) fn variable(&mut self, value: Value) -> Lanes {
        let class = Class::of(self.func.ty(value).dtype());
        let lanes = match self.layout(value) {
            Some(_) => Lanes::Each((0..self.lane_count(value)).map(|_| self.reg(class)).collect()),
            None => Lanes::Splat(self.reg(class)),
        };
        self.define(value, lanes.clone());
        lanes
    }

    /// Assigns values to variables in parallel: a value may be the old value of another variable.
    fn assign(&mut self, variables: &[Lanes], values: &[Value]) {
        let mut moves: Vec<(Reg, Reg)> = Vec::new();
        for (variable, value) in variables.iter().zip(values) {
            let from = self.lanes(*value);
            match variable {
                Lanes::Splat(to) => moves.push((*to, from.get(0))),
                Lanes::Each(to) => moves.extend(to.iter().enumerate().map(|(register, to)| (*to, from.get(register)))),
            }
        }
        moves.retain(|(to, from)| to != from);
        let targets: FxHashSet<Reg> = moves.iter().map(|(to, _)| *to).collect();
        let overwritten = moves.iter().any(|(_, from)| targets.contains(from));
        if overwritten {
            for (_, from) in &mut moves {
                let copy = self.reg(from.class);
                asm!(self, "mov.{} {copy}, {from}", from.class.suffix());
                *from = copy;
            }
        }
        for (to, from) in moves {
            asm!(self, "mov.{} {to}, {from}", to.class.suffix());
        }
    }

    fn branch(&mut self, cond: Value, then_region: Region, else_region: Region, results: &[Value]) {
        let variables: Vec<Lanes> = results.iter().map(|result| self.variable(*result)).collect();
        let (otherwise, end) = (self.asm.label(), self.asm.label());
        let has_else = self.func.region(else_region).insts.len() > 1 || !results.is_empty();
        let cond = self.scalar(cond);
        self.prepare_loads(then_region);
        asm!(self, "@!{cond} bra.uni {}", if has_else { &otherwise } else { &end });
        self.scoped(then_region);
        self.assign(&variables, self.func.yielded(then_region));
        if has_else {
            asm!(self, "bra.uni {end}");
            self.asm.define_label(&otherwise);
            self.scoped(else_region);
            self.assign(&variables, self.func.yielded(else_region));
        }
        self.asm.define_label(&end);
    }

    /// Loads launch values from their parameters. Programs to which bounds do not apply compute the values themselves.
    pub(super) fn launch_value(&mut self, compute: Region, results: &[Value]) {
        for (result, own) in results.iter().zip(self.func.yielded(compute)) {
            let Parameters { first, axes, dtype, in_place } = self.launch_values[result].clone();
            if Some(*result) == launch_value::condition(self.func) {
                // Only the host needs it.
                continue;
            }
            let value = if !axes.is_empty() {
                self.bounded(compute, *own, first, &axes)
            } else if dtype == Dtype::Bool {
                if !in_place {
                    self.later.insert(*result, first);
                    continue;
                }
                self.launched_bool(first)
            } else {
                let value = self.reg(Class::of(dtype));
                asm!(self, "ld.param.{} {value}, [{}]", memory_type(dtype), parameter_name(first));
                value
            };
            self.define(*result, Lanes::Splat(value));
        }
    }

    fn launched_bool(&mut self, parameter: usize) -> Reg {
        let (answer, holds) = (self.reg(Class::B32), self.reg(Class::Pred));
        asm!(self, "ld.param.u32 {answer}, [{}]", parameter_name(parameter));
        asm!(self, "setp.ne.u32 {holds}, {answer}, 0");
        holds
    }

    /// Loads the launch values that ops of a region use and that the usual path does not: a comparison in front would wait for their parameters.
    pub(super) fn load_later(&mut self, region: Region) {
        if self.later.is_empty() {
            return;
        }
        let mut used = Vec::new();
        for inst in &self.func.region(region).insts {
            let add = &mut |operand: Value| used.extend(self.later.get(&operand).map(|parameter| (operand, *parameter)));
            self.func.inst(*inst).op.for_each_operand(add);
        }
        used.sort_unstable_by_key(|(_, parameter)| *parameter);
        used.dedup();
        for (value, parameter) in used {
            let holds = self.launched_bool(parameter);
            self.define(value, Lanes::Splat(holds));
        }
    }

    /// A condition that is true in programs with ids below the bounds, and may be false in all others.
    fn bounded(&mut self, compute: Region, own: Value, first: usize, axes: &[u32]) -> Reg {
        let holds = self.reg(Class::Pred);
        for (number, axis) in axes.iter().enumerate() {
            let [bound, id] = [0; 2].map(|_| self.reg(Class::B32));
            asm!(self, "ld.param.u32 {bound}, [{}]", parameter_name(first + number));
            asm!(self, "mov.u32 {id}, %{}id.{}", self.program(), AXES[*axis as usize]);
            match number {
                0 => asm!(self, "setp.lt.u32 {holds}, {id}, {bound}"),
                _ => asm!(self, "setp.lt.and.u32 {holds}, {id}, {bound}, {holds}"),
            }
        }
        let end = self.asm.label();
        asm!(self, "@{holds} bra.uni {end}");
        let (others, fails) = (self.reg(Class::B32), self.reg(Class::Pred));
        asm!(self, "ld.param.u32 {others}, [{}]", parameter_name(first + axes.len()));
        asm!(self, "setp.ne.u32 {fails}, {others}, 0");
        asm!(self, "@{fails} bra.uni {end}");
        self.scoped(compute);
        let own = self.scalar(own);
        asm!(self, "mov.pred {holds}, {own}");
        self.asm.define_label(&end);
        holds
    }

    /// Computes the addresses and the limits of the loads at the start of a branch in front of the branch. The condition takes a hundred
    /// cycles or more, in which these are computed as well.
    fn prepare_loads(&mut self, region: Region) {
        let func = self.func;
        let mut inside: FxHashSet<Value> = FxHashSet::default();
        for inst in &func.region(region).insts {
            let data = func.inst(*inst);
            let is_outside = |value: Value| !inside.contains(&value);
            // An op whose results are not needed is not emitted, and neither are its operands.
            if !data.op.has_effects() && !data.results.iter().any(|result| self.needed[result.index()]) {
                inside.extend(&data.results);
                continue;
            }
            match data.op {
                Op::Load { base, offset, .. } if is_outside(base) => {
                    if let Some(affine) = self.facts.get(func, offset)
                        && [&affine.start].into_iter().chain(&affine.strides).flat_map(Polynomial::scalars).all(is_outside)
                    {
                        let (layout, bytes) = (self.layout(offset).cloned(), func.ty(base).dtype().bytes() as i64);
                        let (pointer, _) = self.pointers[base].expect("a pointer is a parameter, or was made before");
                        self.address(Some(pointer), Some(base), &affine, layout.as_ref(), bytes);
                    }
                }
                Op::Compare { .. } => {
                    if let Some(test) = PositionTest::of(func, &mut self.facts, &data.op, data.results[0], &self.kept)
                        && test.operands().all(is_outside)
                    {
                        let layout = self.layout(data.results[0]).cloned();
                        self.slack(&test, layout.as_ref());
                    }
                }
                Op::Reduce { .. } | Op::Scan { .. } => break,
                Op::SyncThreads { .. } => {}
                ref op if op.has_effects() => break,
                _ => {}
            }
            inside.extend(&data.results);
        }
    }

    fn counted_loop(&mut self, bounds: [Value; 3], init: &[Value], body: Region, results: &[Value]) {
        let params = &self.func.region(body).params;
        let [lower, end_of_index, stride] = bounds;
        let ty = arithmetic_type(self.func.ty(lower).dtype());
        let variables: Vec<Lanes> = params.iter().map(|param| self.variable(*param)).collect();
        let (again, end) = (self.asm.label(), self.asm.label());
        let initial: Vec<Value> = [lower].into_iter().chain(init.iter().copied()).collect();
        self.assign(&variables, &initial);
        let (upper, step, index) = (self.scalar(end_of_index), self.scalar(stride), variables[0].get(0));
        let done = self.reg(Class::Pred);
        asm!(self, "setp.ge.{ty} {done}, {index}, {upper}");
        asm!(self, "@{done} bra.uni {end}");
        let stuck = self.reg(Class::Pred);
        asm!(self, "setp.le.{ty} {stuck}, {step}, 0");
        asm!(self, "@{stuck} bra.uni {end}");
        // What is computed from the first index is not available in later iterations.
        self.addresses.push(FxHashMap::default());
        let carried = self.carried(params[0], stride, body);
        self.addresses.pop();
        self.asm.define_label(&again);
        let addresses = self.carried_addresses(&carried);
        self.addresses.push(addresses);
        self.loops.push((params[0], end_of_index));
        self.scoped(body);
        self.loops.pop();
        self.addresses.pop();
        self.assign(&variables[1..], self.func.yielded(body));
        // The remainder is positive, also if `index + step` would overflow.
        let (left, more) = (self.reg(index.class), self.reg(Class::Pred));
        let bits = if index.class == Class::B64 { 64 } else { 32 };
        asm!(self, "sub.s{bits} {left}, {upper}, {index}");
        asm!(self, "setp.gt.u{bits} {more}, {left}, {step}");
        asm!(self, "add.s{bits} {index}, {index}, {step}");
        self.advance(&carried);
        asm!(self, "@{more} bra.uni {again}");
        self.asm.define_label(&end);
        for (result, variable) in results.iter().zip(&variables[1..]) {
            self.define(*result, variable.clone());
        }
    }

    fn while_loop(&mut self, init: &[Value], test: Region, body: Region, results: &[Value]) {
        let variables: Vec<Lanes> = self.func.region(test).params.iter().map(|param| self.variable(*param)).collect();
        let (again, end) = (self.asm.label(), self.asm.label());
        self.assign(&variables, init);
        self.asm.define_label(&again);
        self.addresses.push(FxHashMap::default());
        self.slacks.push(FxHashMap::default());
        self.divisors.push(FxHashMap::default());
        self.region(test);
        let Op::Condition { cond, values } = &self.func.inst(self.func.terminator(test)).op else {
            unreachable!("the test of a verified `while` ends in `condition`")
        };
        for (param, value) in self.func.region(body).params.iter().chain(results).zip(values.iter().cycle()) {
            let lanes = self.lanes(*value);
            self.define(*param, lanes);
        }
        let cond = self.scalar(*cond);
        asm!(self, "@!{cond} bra.uni {end}");
        self.scoped(body);
        self.addresses.pop();
        self.slacks.pop();
        self.divisors.pop();
        self.assign(&variables, self.func.yielded(body));
        asm!(self, "bra.uni {again}");
        self.asm.define_label(&end);
    }
}
