//! Barrier state: the accesses since the last barrier, on any path to the current point of the program.
//!
//! ```text
//! A                               since: A
//! if c { barrier; B } else { C }  since: B, A, C; a join takes the union of both paths
//! loop {
//!     D                           exposed: D precedes any barrier of its iteration, so it follows the end of the previous one
//!     barrier
//!     E                           since: E, with which D of the next iteration may conflict
//! }
//! ```

use rustc_hash::FxHashSet;
use std::hash::Hash;

use crate::ir::{Inst, Region};

use super::Placement;
use super::hazards::{Counted, Iteration, Touch};
use super::memory::Use;

/// The accesses of one kind since the last barrier.
pub(crate) struct BarrierState<T> {
    done: Vec<T>,
    loops: Vec<Around<T>>,
}

/// A loop around the current point.
struct Around<T> {
    /// Whether every path from the start of the body contains a barrier.
    is_fenced: bool,
    /// The accesses before that barrier.
    exposed: Vec<T>,
}

/// A snapshot of the state, for code that another path continues from.
pub(crate) struct Snapshot<T> {
    done: Vec<T>,
    fenced: Vec<bool>,
}

impl<T> Default for BarrierState<T> {
    fn default() -> Self {
        BarrierState { done: Vec::new(), loops: Vec::new() }
    }
}

impl<T: Clone + Eq + Hash> BarrierState<T> {
    pub(crate) fn done(&self) -> &[T] {
        &self.done
    }

    pub(crate) fn note(&mut self, access: T) {
        if !self.done.contains(&access) {
            self.done.push(access);
        }
    }

    /// Records an access that may conflict with accesses at the end of an enclosing loop.
    pub(crate) fn expose(&mut self, access: &T) {
        for around in self.loops.iter_mut().filter(|around| !around.is_fenced && !around.exposed.contains(access)) {
            around.exposed.push(access.clone());
        }
    }

    /// A barrier after all accesses, except those that `outlasts` it.
    pub(crate) fn fence(&mut self, outlasts: impl Fn(&T) -> bool) {
        self.done.retain(outlasts);
        self.loops.iter_mut().for_each(|around| around.is_fenced = true);
    }

    fn snapshot(&self) -> Snapshot<T> {
        Snapshot { done: self.done.clone(), fenced: self.loops.iter().map(|around| around.is_fenced).collect() }
    }

    fn go_back(&mut self, snapshot: &Snapshot<T>) {
        self.done.clone_from(&snapshot.done);
        self.loops.iter_mut().zip(&snapshot.fenced).for_each(|(around, is_fenced)| around.is_fenced = *is_fenced);
    }

    /// A join of two paths: the union of their accesses, and only the barriers that both paths contain.
    fn join(&mut self, other: Snapshot<T>) {
        let known: FxHashSet<T> = self.done.iter().cloned().collect();
        self.done.extend(other.done.into_iter().filter(|access| !known.contains(access)));
        self.loops.iter_mut().zip(other.fenced).for_each(|(around, is_fenced)| around.is_fenced &= is_fenced);
    }

    fn begin_loop(&mut self) {
        self.loops.push(Around { is_fenced: false, exposed: Vec::new() });
    }

    /// The accesses of the next iteration before any barrier.
    fn end_loop(&mut self) -> Vec<T> {
        self.loops.pop().map_or(Vec::new(), |around| around.exposed)
    }
}

/// A snapshot of all barrier state at a point of the program.
pub(crate) struct Fork {
    shared: Snapshot<Use>,
    touched: Snapshot<Touch>,
}

/// A loop whose body is being walked.
pub(crate) struct Opened {
    front: Fork,
    iteration: Iteration,
}

impl Placement<'_> {
    /// A snapshot, before code that may not run or at the end of such code.
    pub(crate) fn fork(&self) -> Fork {
        Fork { shared: self.shared.uses.snapshot(), touched: self.hazards.touched.snapshot() }
    }

    /// Restores the snapshot, for the other arm.
    pub(crate) fn go_back(&mut self, fork: &Fork) {
        self.shared.uses.go_back(&fork.shared);
        self.hazards.touched.go_back(&fork.touched);
    }

    pub(crate) fn join(&mut self, other: Fork) {
        self.shared.uses.join(other.shared);
        self.hazards.touched.join(other.touched);
    }

    /// Begins a loop, before the code that enters it. A counted loop has bounds and an index.
    pub(crate) fn begin_loop(&mut self, inst: Inst, counted: Option<Counted>, regions: &[Region]) -> Opened {
        let iteration = self.order_loop(inst, counted, regions);
        let front = self.fork();
        self.shared.uses.begin_loop();
        self.hazards.touched.begin_loop();
        // `order_loop` has already compared the accesses before the loop with all accesses inside it.
        self.hazards.touched.done.clear();
        Opened { front, iteration }
    }

    /// At the end of a loop's body, in front of its terminator: the next iteration may conflict with the accesses of this one.
    pub(crate) fn end_loop(&mut self, Opened { front, iteration }: Opened, at: Inst) {
        let touched = self.hazards.touched.end_loop();
        self.order_iterations(iteration, &touched, at);
        let written = self.shared.uses.end_loop();
        self.end_shared_iteration(&written, at);
        self.join(front);
    }
}
