//! Common subexpressions: a value that an earlier operation has computed already takes its place.
//!
//! ```text
//! before                                                       after
//!   %0 = view %x at 0 : f32[2*n]                                 %0 = view %x at 0 : f32[2*n]
//!   %1 = alloc : f32[n]                                          %1 = alloc : f32[n]
//!   %2 = launch sum<..> [..] (x = %0, y = %1) : f32[n]           %2 = launch sum<..> [..] (x = %0, y = %1) : f32[n]
//!   %3 = view %x at 0 : f32[2*n]
//!   %4 = alloc : f32[n]
//!   %5 = launch sum<..> [..] (x = %3, y = %4) : f32[n]
//!   %6 = launch add<..> [..] (a = %2, b = %5, ..) ..             %6 = launch add<..> [..] (a = %2, b = %2, ..) ..
//! ```
//!
//! | operation | equal to an earlier one if |
//! |---|---|
//! | view | value, offset and type are equal. A view of a view is one of the whole, and a view of all elements with the same type is the value |
//! | zeros | the types are equal |
//! | launch | kernel, types, constants, grids, scalars and the values of all tensors are equal, also of those that it writes |
//!
//! **Why launches may be merged.** A launch that writes a tensor gives it a new value, so a launch is a function from values to values. It has no other
//! effect: kernels that print, and `unchecked` kernels, which may write elsewhere, are not recorded. A kernel with races or with atomic sums of floats may
//! give one of several results. One result for both launches is among those that two launches may give.
//!
//! **Calls of opaque ops are never merged.** Their bodies may have effects, and may return other elements in each call, such as random numbers.
//!
//! **New memory has arbitrary elements.** Two allocations are different values, yet two launches that fill them are to be one. Their results are
//! equal if the arbitrary elements are. The pass may choose these elements for the second launch if no other operation has seen them: if the launch is
//! the only use of the memory. The results of both launches may still contain arbitrary elements, so the same rule holds for their uses:
//!
//! ```text
//!   %2 = launch sum<..> [..] (x = %0, y = %1)         %1 and %4 are new, and have no other use
//!   %5 = launch sum<..> [..] (x = %0, y = %4)         equal to %2 for some elements of %4
//!   %6 = launch scale<..> [..] (y = %2)
//!   %7 = launch scale<..> [..] (y = %5)               equal to %6 if %5 has no other use
//! ```
//!
//! **No additional copies.** A launch writes in place where no later operation needs the older elements. If two values become one, a launch that
//! writes one of them would need a copy. So a value is not replaced if a launch writes it, its replacement or a view of them, or if both are outputs, which
//! the caller may write. Views share memory in any case, so these rules do not hold for them.
//!
//! The pass walks once over the nodes, with maps. Replaced nodes stay until [`super::dead_code`] removes them. If that removes all nodes of a call, the call
//! goes, too.

use std::collections::HashMap;

use kernel_runtime::Dim;
use kernel_runtime::ops::recorder::{RecordedArg, RecordedLaunch, TensorType, Value};
use kernel_runtime::ops::{LaunchVariant, OpValue};

use crate::graph::Graph;
use kernel_package::{NodeOp, Plan};

/// Runs the pass.
pub(crate) fn run(graph: &mut Graph) {
    let mut cx = Cx::new(graph);
    let Graph { plan: Plan { nodes, types, outputs, .. }, calls } = graph;
    for node in nodes {
        match &mut node.op {
            NodeOp::Alloc { zeroed } => cx.alloc(node.results[0], &types[node.results[0].0 as usize], *zeroed),
            NodeOp::View { of, offset } => {
                *of = cx.replacement(*of);
                (*of, *offset) = cx.whole(*of, offset);
                cx.view(node.results[0], *of, offset, types);
            }
            NodeOp::Launch(launch) => {
                launch.map_values(&mut |value| cx.replacement(value));
                cx.launch(launch, &node.results);
            }
            NodeOp::Extern(call) => call.map_values(&mut |value| cx.replacement(value)),
        }
    }
    outputs.iter_mut().for_each(|output| *output = cx.replacement(*output));
    for call in calls {
        call.args.iter_mut().for_each(|(_, value)| cx.replace_in(value));
        call.results.iter_mut().for_each(|result| *result = cx.replacement(*result));
    }
}

/// What launches are compared by.
#[derive(PartialEq, Eq, Hash)]
struct LaunchKey {
    variant: LaunchVariant,
    /// One for each configuration.
    grids: Vec<[Dim; 3]>,
    args: Vec<ArgKey>,
}

#[derive(PartialEq, Eq, Hash)]
enum ArgKey {
    Tensor(Value),
    /// New memory that nothing else uses, by its number in [`Cx::fresh`].
    Fresh(usize),
    Word(u64),
    Dim(Dim),
}

/// New memory, and views of it.
#[derive(PartialEq, Eq, Hash)]
enum Fresh {
    Alloc(TensorType),
    View(usize, Dim, TensorType),
}

/// What is known of a value.
#[derive(Clone)]
struct Known {
    /// An earlier value that is equal, up to arbitrary elements if `is_arbitrary`. Otherwise the value itself.
    leader: Value,
    /// Whether it contains arbitrary elements that only the operations in front of it have seen.
    is_arbitrary: bool,
    /// The number in [`Cx::fresh`] of new memory, or of its only view. [`Cx::fresh_of`] gives it while it has one use.
    fresh: Option<usize>,
    /// Whether a launch writes the value or a view of it.
    is_written: bool,
    /// Whether the value or a view of it is an output.
    is_output: bool,
    /// The number of operands and outputs that are the value.
    uses: usize,
    /// For a view, the whole and the offset.
    view: Option<(Value, Dim)>,
    /// The value that takes its place.
    replacement: Option<Value>,
}

struct Cx {
    known: Vec<Known>,
    fresh: HashMap<Fresh, usize>,
    /// The first of equal zeros, and the first that no launch writes.
    zeros: HashMap<TensorType, (Value, Option<Value>)>,
    /// The first of equal views.
    views: HashMap<(Value, Dim, TensorType), Value>,
    /// The results of the first of equal launches.
    launches: HashMap<LaunchKey, Vec<Value>>,
}

impl Cx {
    fn new(graph: &Graph) -> Cx {
        let new = |value| Known {
            leader: Value(value),
            is_arbitrary: false,
            fresh: None,
            is_written: false,
            is_output: false,
            uses: 0,
            view: None,
            replacement: None,
        };
        let mut known: Vec<Known> = (0..).take(graph.plan.types.len()).map(new).collect();
        for output in &graph.plan.outputs {
            let known = &mut known[output.0 as usize];
            (known.is_output, known.uses) = (true, known.uses + 1);
        }
        // A use comes after the definition, so a walk from the end sees the uses of a view before the view.
        for node in graph.plan.nodes.iter().rev() {
            node.op.each_operand(&mut |value, is_written| {
                let operand = &mut known[value.0 as usize];
                operand.uses += 1;
                operand.is_written |= is_written;
            });
            if let NodeOp::View { of, .. } = node.op {
                let Known { is_written, is_output, .. } = known[node.results[0].0 as usize];
                let whole = &mut known[of.0 as usize];
                whole.is_written |= is_written;
                whole.is_output |= is_output;
            }
        }
        Cx { known, fresh: HashMap::new(), zeros: HashMap::new(), views: HashMap::new(), launches: HashMap::new() }
    }

    fn of(&self, value: Value) -> &Known {
        &self.known[value.0 as usize]
    }

    fn of_mut(&mut self, value: Value) -> &mut Known {
        &mut self.known[value.0 as usize]
    }

    /// The value that takes the place of this one. A replacement has none itself: only a value without an earlier equal one replaces others.
    fn replacement(&self, value: Value) -> Value {
        self.of(value).replacement.unwrap_or(value)
    }

    fn replace_in(&self, value: &mut OpValue) {
        match value {
            OpValue::Tensor(value) => *value = self.replacement(*value),
            OpValue::List(values) => values.iter_mut().for_each(|value| self.replace_in(value)),
            OpValue::Real(_) | OpValue::Text(_) => {}
        }
    }

    /// Whether one value may take the place of an equal one without additional copies.
    fn may_replace(&self, value: Value, by: Value) -> bool {
        let (value, by) = (self.of(value), self.of(by));
        let is_read_only = !value.is_written && !by.is_written;
        is_read_only && !(value.is_output && by.is_output)
    }

    fn replace(&mut self, value: Value, by: Value) {
        let Known { is_written, is_output, uses, .. } = *self.of(value);
        self.of_mut(value).replacement = Some(by);
        let by = self.of_mut(by);
        by.is_written |= is_written;
        by.is_output |= is_output;
        by.uses += uses;
    }

    /// Whether the pass may choose the arbitrary elements of the value for its use, because that is the only one.
    fn is_chosen(&self, value: Value) -> bool {
        self.of(value).is_arbitrary && self.of(value).uses == 1
    }

    /// The earlier value that a use may take in place of the value.
    fn equal(&self, value: Value) -> Value {
        let Known { leader, is_arbitrary, .. } = *self.of(value);
        if !is_arbitrary || self.is_chosen(value) { leader } else { value }
    }

    fn number(&mut self, fresh: Fresh) -> usize {
        let new = self.fresh.len();
        *self.fresh.entry(fresh).or_insert(new)
    }

    /// The number of new memory that no other operation uses.
    fn fresh_of(&self, value: Value) -> Option<usize> {
        let Known { fresh, uses, .. } = *self.of(value);
        fresh.filter(|_| uses == 1)
    }

    fn alloc(&mut self, result: Value, ty: &TensorType, zeroed: bool) {
        if !zeroed {
            let fresh = Some(self.number(Fresh::Alloc(ty.clone())));
            let known = self.of_mut(result);
            (known.fresh, known.is_arbitrary) = (fresh, true);
            return;
        }
        let (first, unwritten) = *self.zeros.entry(ty.clone()).or_insert((result, None));
        self.of_mut(result).leader = first;
        match unwritten {
            Some(unwritten) if self.may_replace(result, unwritten) => self.replace(result, unwritten),
            None if !self.of(result).is_written => drop(self.zeros.insert(ty.clone(), (first, Some(result)))),
            _ => {}
        }
    }

    /// The tensor that is no view, and the offset in it, for an offset in a value.
    fn whole(&mut self, of: Value, offset: &Dim) -> (Value, Dim) {
        if let Some((whole, first)) = &self.of(of).view {
            let (whole, sum) = (*whole, first + offset);
            // The sum of two offsets may have an error where they have none: it may have too many terms.
            if sum.bounds().is_ok() {
                self.of_mut(whole).uses += 1;
                return (whole, sum);
            }
        }
        (of, offset.clone())
    }

    fn view(&mut self, result: Value, of: Value, offset: &Dim, types: &[TensorType]) {
        let ty = &types[result.0 as usize];
        if offset.known() == Some(0) && *ty == types[of.0 as usize] {
            self.of_mut(of).uses -= 1;
            return self.replace(result, of);
        }
        let key = |of: Value| (of, offset.clone(), ty.clone());
        if let Some(first) = self.views.get(&key(of)) {
            return self.replace(result, *first);
        }
        let equal = self.views.get(&key(self.equal(of))).copied();
        let fresh = self.fresh_of(of).map(|number| self.number(Fresh::View(number, offset.clone(), ty.clone())));
        let is_arbitrary = self.is_chosen(of);
        self.views.insert(key(of), result);
        let known = self.of_mut(result);
        known.view = Some((of, offset.clone()));
        known.leader = equal.unwrap_or(result);
        (known.is_arbitrary, known.fresh) = (is_arbitrary, fresh);
    }

    fn launch(&mut self, launch: &RecordedLaunch, results: &[Value]) {
        let is_arbitrary = launch.args().any(|(_, arg)| match arg {
            RecordedArg::Tensor { value, .. } => self.is_chosen(*value),
            RecordedArg::Word { .. } | RecordedArg::Dim { .. } => false,
        });
        results.iter().for_each(|result| self.of_mut(*result).is_arbitrary = is_arbitrary);
        if let Some(first) = self.launches.get(&self.key(launch, &|value| self.equal(value))) {
            let first = first.clone();
            let pairs = || results.iter().zip(&first);
            if pairs().all(|(result, first)| self.may_replace(*result, *first)) {
                pairs().for_each(|(result, first)| self.replace(*result, *first));
            } else if !is_arbitrary || results.len() == 1 {
                // The arbitrary elements of several results depend on each other, so none is equal to another value alone.
                pairs().for_each(|(result, first)| self.of_mut(*result).leader = *first);
            }
            return;
        }
        // An equal value takes the place of the argument only if both have the same elements, because the argument may have more uses later.
        let key = self.key(launch, &|value| if self.of(value).is_arbitrary { value } else { self.of(value).leader });
        self.launches.insert(key, results.to_vec());
    }

    /// The key of a launch with other values as arguments.
    fn key(&self, launch: &RecordedLaunch, equal: &dyn Fn(Value) -> Value) -> LaunchKey {
        let arg = |arg: &RecordedArg| match arg {
            RecordedArg::Tensor { value, .. } => match self.fresh_of(*value) {
                Some(number) => ArgKey::Fresh(number),
                None => ArgKey::Tensor(equal(*value)),
            },
            RecordedArg::Word { word, .. } => ArgKey::Word(*word),
            RecordedArg::Dim { dim, .. } => ArgKey::Dim(dim.clone()),
        };
        let (grids, args) = (launch.grids().cloned().collect(), launch.args().map(|(_, of)| arg(of)).collect());
        LaunchKey { variant: launch.variant(), grids, args }
    }
}

#[cfg(test)]
mod tests;
