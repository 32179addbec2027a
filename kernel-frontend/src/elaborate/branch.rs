//! `if`: on a scalar at run time, on a constant at specialisation.

use super::join::{Plan, Ways};
use super::meaning::{Constant, Kind, Meaning};
use super::{Elaborator, Region};
use crate::ast::{Block, If};
use crate::span::SourceSpan;
use kernel_lang::dtype::Dtype;
use kernel_lang::ir::{ConstExpr, Elem, Op, Type, Value};

/// The condition of a branch.
pub(super) enum Decider {
    Runtime(Value),
    Constant(ConstExpr),
    /// An error in the condition has been reported: both branches are checked and dropped.
    Unknown,
}

/// The use of an `if`.
#[derive(Clone, Copy)]
pub(super) enum Wants<'a> {
    Nothing,
    /// Its value, and the expected type of the value if it is known.
    Value(Option<&'a Elem>),
}

impl Elaborator<'_> {
    pub(super) fn if_else(&mut self, inner: &If, wants: Wants<'_>, span: SourceSpan) -> Meaning {
        let cond = self.expr(&inner.cond);
        let cond = self.taken_as_bool(cond, inner.cond.span);
        // An `if` without `else` and without a value is a statement.
        let wants = if inner.else_block.is_some() || inner.then_block.value.is_some() { wants } else { Wants::Nothing };
        self.branch(&cond, inner.cond.span, &inner.then_block, inner.else_block.as_ref(), wants, span)
    }

    pub(super) fn branch(
        &mut self,
        cond: &Meaning,
        cond_span: SourceSpan,
        then_block: &Block,
        else_block: Option<&Block>,
        wants: Wants<'_>,
        span: SourceSpan,
    ) -> Meaning {
        let elem = if let Wants::Value(elem) = wants { elem } else { None };
        let decider = self.decider(cond, cond_span);
        // In a function, a condition that a call makes constant selects a branch for that call only; the other branch may not even fit the
        // types of the call.
        if let (Decider::Constant(ConstExpr::Bool(cond)), false) = (&decider, self.frames.is_empty()) {
            let block = if *cond { Some(then_block) } else { else_block };
            return block.map_or(Meaning::UNIT, |block| self.scoped(|cx| cx.block_as(block, elem)));
        }
        let undecided = matches!(decider, Decider::Unknown);
        let is_static = usize::from(matches!(decider, Decider::Constant(_)));
        self.static_branches += is_static;
        let before = self.meanings();
        let (then_region, then_value, then_after) = self.way(Some(then_block), elem, &before);
        let (else_region, else_value, else_after) = self.way(else_block, elem, &before);
        self.static_branches -= is_static;
        let mut ways = Ways { regions: [then_region, else_region], yields: [Vec::new(), Vec::new()], choice: None };
        let mut plans = Vec::new();
        for index in 0..before.len() {
            if then_after[index] == before[index] && else_after[index] == before[index] {
                continue;
            }
            let plan = self.join(&then_after[index], &else_after[index], &mut ways, span).unwrap_or_else(|| {
                if undecided {
                    return Plan::Same(Meaning::Poison);
                }
                let (a, b) = (self.describe(&then_after[index]), self.describe(&else_after[index]));
                let name = self.variables[index].name.clone();
                let help = format!("give it one type before the `if`: `let mut {name}: f32 = ..;`");
                self.errors.push_help(span, format!("`{name}` is {a} after one branch and {b} after the other"), help);
                Plan::Same(Meaning::Poison)
            });
            plans.push((index, plan));
        }
        // The value of an `if` on constants is a constant if both sides are: it may be an extent.
        ways.choice = if let Decider::Constant(cond) = &decider { Some(cond.clone()) } else { None };
        let value = matches!(wants, Wants::Value(_)).then(|| {
            let has_else = else_block.is_some();
            if undecided && has_else {
                // Branches with different types are not reported again: for a tile condition the help is `select`.
                return self.join(&then_value, &else_value, &mut ways, span).unwrap_or(Plan::Same(Meaning::Poison));
            }
            self.join_values(&then_value, &else_value, has_else, &mut ways, span)
        });
        let results = self.close(decider, ways, span);
        for (index, plan) in plans {
            self.variables[index].meaning = plan.with(&results);
        }
        value.map_or(Meaning::UNIT, |plan| plan.with(&results))
    }

    fn decider(&mut self, cond: &Meaning, span: SourceSpan) -> Decider {
        match cond {
            Meaning::Poison => return Decider::Unknown,
            Meaning::Constant(Constant { expr, kind: Kind::Bool, .. }) => return Decider::Constant(expr.clone()),
            Meaning::Value(value) if self.func.ty(*value) == &Type::scalar(Dtype::Bool) => return Decider::Runtime(*value),
            _ => {}
        }
        let found = self.describe(cond);
        let help = if !self.shape_of(cond).is_empty() {
            "the program as a whole takes one branch: `if any(cond)` or `if all(cond)`; to choose for each element write `select(cond, a, b)`"
        } else {
            self.compare_help(cond)
        };
        self.errors.push_help(span, format!("the condition of an `if` is one `bool`, not {found}"), help);
        Decider::Unknown
    }

    /// Elaborates one branch into its own region: its value, and the meanings of the variables at its end.
    fn way(&mut self, block: Option<&Block>, elem: Option<&Elem>, before: &[Meaning]) -> (Region, Meaning, Vec<Meaning>) {
        let region = self.func.add_region();
        let outer = std::mem::replace(&mut self.region, region);
        let value = match (block.map_or(Meaning::UNIT, |block| self.scoped(|cx| cx.block_as(block, elem))), elem, block) {
            (Meaning::Constant(constant @ Constant { elem: None, .. }), Some(elem), Some(block)) if self.fit(&constant, elem).is_ok() => {
                self.typed(constant, elem.clone(), block.value.as_ref().map_or(block.span, |value| value.span))
            }
            (value, ..) => value,
        };
        let mut after = self.meanings();
        after.truncate(before.len());
        self.restore(before);
        self.region = outer;
        (region, value, after)
    }

    fn join_values(&mut self, then_value: &Meaning, else_value: &Meaning, has_else: bool, ways: &mut Ways, span: SourceSpan) -> Plan {
        if !has_else && *then_value != Meaning::UNIT {
            self.errors.push_help(span, "an `if` without `else` has no value", "add the value of the other case: `else { .. }`");
            return Plan::Same(Meaning::Poison);
        }
        if let Some(plan) = self.join(then_value, else_value, ways, span) {
            return plan;
        }
        let (a, b) = (self.describe(then_value), self.describe(else_value));
        let help = match (self.elem_of(then_value), self.elem_of(else_value)) {
            (Some(x), Some(y)) if x != y => format!("cast one side: `(..) as {x}`"),
            (None, None) if matches!((then_value, else_value), (Meaning::Pointer { .. }, Meaning::Pointer { .. })) => {
                "a pointer stays in one tensor: choose between what is loaded, or between addresses, `select(cond, a, b) as Ptr<f32>`"
                    .to_string()
            }
            (Some(_), Some(_)) => "both need the same extent; a scalar becomes a tile with `full([N], value)`".to_string(),
            _ => "both branches need values of one type".to_string(),
        };
        self.errors.push_help(span, format!("the branches of the `if` give {a} and {b}"), help);
        Plan::Same(Meaning::Poison)
    }

    /// Terminates both regions and appends the op.
    pub(super) fn close(&mut self, decider: Decider, ways: Ways, span: SourceSpan) -> Vec<Value> {
        let types: Vec<Type> = ways.yields[0].iter().map(|value| self.func.ty(*value).clone()).collect();
        let ways_are_empty = ways.regions.iter().all(|region| self.func.region(*region).insts.is_empty());
        let loc = self.loc(span);
        for (region, values) in ways.regions.into_iter().zip(ways.yields) {
            self.func.append(region, Op::Yield { values }, [], loc);
        }
        let [then_region, else_region] = ways.regions;
        if matches!(decider, Decider::Constant(_)) && types.is_empty() && ways_are_empty {
            return Vec::new();
        }
        let op = match decider {
            Decider::Runtime(cond) => Op::If { cond, then_region, else_region, rare: false },
            Decider::Constant(cond) => Op::StaticIf { cond, then_region, else_region },
            Decider::Unknown => Op::StaticIf { cond: ConstExpr::Bool(true), then_region, else_region },
        };
        let inst = self.func.append(self.region, op, types, loc);
        self.func.inst(inst).results.to_vec()
    }

    /// Is it a scalar `bool`?
    pub(super) fn is_scalar_bool(&self, meaning: &Meaning) -> bool {
        self.shape_of(meaning).is_empty() && self.elem_of(meaning) == Some(Elem::Dtype(Dtype::Bool))
    }
}
