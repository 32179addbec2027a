//! Access conflicts: the loads and stores that may access an element that another program accesses, where one of the two stores.
//!
//! Programs of a launch run on several threads. If two of them access one element by plain loads and stores and one of them stores, this is
//! a data race: undefined behaviour in Rust, although the kernel is safe. An access that may conflict therefore accesses each element by a
//! relaxed atomic. A race then gives one of the stored values, as on a GPU. Relaxed atomics are not vectorised, so an access is plain only if a
//! proof shows that it has no conflict.
//!
//! The proof runs once per launch, when the arguments and the grid are known. For most kernels over rows it requires that a row has no more
//! columns than its stride.
//!
//! | file | what it does |
//! |---|---|
//! | `plan` | finds, once per kernel, the accesses that may conflict and the values that determine their offsets and masks |
//! | `evaluate` | computes these values as sums over variables |
//! | `sum` | sums over variables |
//! | `apart` | proves for two accesses that no two programs access one element |
//!
//! # Assumptions of a plain access
//!
//! 1. The tensors of two parameters share no memory: [`super::Program::run`] requires it of safe kernels. For `unchecked` kernels the
//!    address ranges are compared, and an access through an address that the kernel computes may conflict with any other access.
//! 2. An element is accessed only if its mask holds, its offset is inside the tensor, and the conditions of the enclosing `if`s hold.
//!    Conditions that the proof does not support are ignored.
//! 3. The sums are exact. An integer that might overflow its type, so that the kernel's arithmetic wraps, is unknown. So is a value that is
//!    loaded from memory or carried by a `while`. An access at an unknown offset may conflict.
//! 4. Two programs of a launch differ in a coordinate, and each coordinate is less than the extent of the launch's grid.
//! 5. Equal offsets have equal digits: see `apart`.
//!
//! Accesses of one program never race, because one thread runs the program.

mod apart;
mod evaluate;
mod plan;
mod sum;

use std::sync::{Arc, Mutex, PoisonError};

use apart::Reach;
use evaluate::Launch;
use kernel_lang::ir::{Function, Inst, SideTable, Value};
use plan::{Base, Kind, Plan, Site};
use sum::Sum;

/// The maximum number of different accesses of which each pair is checked. In a kernel with more, all accesses may conflict.
const MOST_SITES: usize = 48;

/// The loads and stores of a launch that use relaxed atomics, because they may conflict with those of other programs.
///
/// The result of [`super::Program::conflicts`], or [`Conflicts::none`] for programs that run one after another.
#[derive(Clone, Default, Debug)]
pub struct Conflicts(Option<Arc<[bool]>>);

impl Conflicts {
    /// All accesses are plain.
    pub fn none() -> Conflicts {
        Conflicts(None)
    }

    /// Whether the access with this number, in the order of the kernel's text, is a load or a store that uses relaxed atomics.
    pub fn contains(&self, access: usize) -> bool {
        self.as_slice().get(access) == Some(&true)
    }

    /// By the number of an access; empty if all accesses are plain.
    pub(super) fn as_slice(&self) -> &[bool] {
        self.0.as_deref().unwrap_or_default()
    }
}

/// The conflict check of one kernel, with a cache of its last result.
#[derive(Debug)]
pub(super) struct Decider {
    plan: Plan,
    /// The argument words on which the result depends.
    words: Vec<usize>,
    last: Mutex<Option<Decision>>,
}

#[derive(Debug)]
struct Decision {
    words: Vec<u64>,
    grid: [u32; 3],
    conflicts: Conflicts,
}

impl Decider {
    /// The check of a kernel, and the number of each access in the order of the text. `words` are those of the kernel's parameters.
    pub(super) fn of(func: &Function, words: &SideTable<Value, usize>) -> (Decider, SideTable<Inst, u32>) {
        let (plan, numbers) = plan::plan(func, words);
        let parameters = plan.bases.iter().filter_map(|base| if let Base::Parameter { word, .. } = base { Some(*word) } else { None });
        let mut words: Vec<usize> = plan.words.clone();
        for word in parameters {
            words.push(word + 1);
            words.extend(plan.unchecked.then_some(word));
        }
        words.sort_unstable();
        words.dedup();
        (Decider { plan, words, last: Mutex::new(None) }, numbers)
    }

    /// The conflicts of a launch.
    pub(super) fn conflicts(&self, args: &[u64], grid: [u32; 3]) -> Conflicts {
        if self.plan.sites.is_empty() || grid.into_iter().map(u64::from).product::<u64>() < 2 {
            return Conflicts::none();
        }
        let words = || self.words.iter().map(|word| args[*word]);
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(last) = last.as_ref().filter(|last| last.grid == grid && words().eq(last.words.iter().copied())) {
            return last.conflicts.clone();
        }
        let conflicts = decide(&self.plan, args, grid);
        *last = Some(Decision { words: words().collect(), grid, conflicts: conflicts.clone() });
        conflicts
    }
}

fn decide(plan: &Plan, args: &[u64], grid: [u32; 3]) -> Conflicts {
    let mut conflicts = vec![plan.sites.len() > MOST_SITES; plan.sites.len()];
    if plan.sites.len() <= MOST_SITES {
        let launch = Launch::of(plan, args, grid);
        let programs = launch.program_variables();
        let reaches: Vec<Option<Reach>> = plan.sites.iter().map(|site| reach(plan, &launch, site, &programs)).collect();
        for (at, site) in plan.sites.iter().enumerate() {
            for (other_at, other) in plan.sites.iter().enumerate().skip(at) {
                let is_harmless = site.kind == other.kind && site.kind != Kind::Store;
                if !is_harmless
                    && may_meet(plan, args, (site, other), || {
                        let (Some(reach), Some(other)) = (&reaches[at], &reaches[other_at]) else { return true };
                        !apart::are_apart(reach, other, &programs)
                    })
                {
                    (conflicts[at], conflicts[other_at]) = (true, true);
                }
            }
        }
    }
    if !conflicts.contains(&true) {
        return Conflicts::none();
    }
    let is_made_atomic = |site: usize| conflicts[site] && plan.sites[site].kind != Kind::Atomic;
    Conflicts(Some(plan.site_of.iter().map(|site| site.is_some_and(is_made_atomic)).collect()))
}

/// Whether two accesses of different programs may access one element. `by_offsets` answers this for accesses to one tensor.
fn may_meet(plan: &Plan, args: &[u64], (first, second): (&Site, &Site), by_offsets: impl FnOnce() -> bool) -> bool {
    let range = |site: &Site| match plan.bases[site.base] {
        Base::Parameter { word, width } => Some((args[word], args[word].saturating_add(args[word + 1].saturating_mul(width as u64)))),
        Base::Address => None,
    };
    match (range(first), range(second)) {
        (Some(_), Some(_)) if first.base == second.base => by_offsets(),
        (Some((start, end)), Some((other, other_end))) => plan.unchecked && start < other_end && other < end,
        // A computed address may differ between programs.
        _ => true,
    }
}

/// The elements that an access may touch; `None` if they are unknown.
fn reach(plan: &Plan, launch: &Launch<'_>, site: &Site, programs: &[usize]) -> Option<Reach> {
    let (Base::Parameter { word, .. }, extents) = (plan.bases[site.base], &plan.steps[site.offset].extents) else { return None };
    let offset = launch.get(site.offset).exact()?;
    let rank = offset.axes.len();
    let mut limits: Vec<Sum> = site.mask.iter().flat_map(|mask| launch.get(*mask).limits()).cloned().collect();
    let conditions = site.conditions.iter().flat_map(|condition| launch.get(*condition).limits());
    limits.extend(conditions.map(|limit| Sum { axes: vec![0; rank], ..limit.clone() }));
    // 0 <= offset < length
    let beyond = Sum::constant(1 - i128::from(launch.words[word + 1]), rank);
    limits.extend([offset.times(-1), offset.plus(&beyond, 1)].into_iter().flatten());
    Reach::of(&launch.variables, offset, &limits, extents, programs)
}
