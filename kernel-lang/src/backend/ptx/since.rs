//! What was done since the last barrier, by any way that leads to this place of the program.
//!
//! ```text
//! A                               since: A
//! if c { barrier; B } else { C }  since: B, A, C; where two ways meet, what either has left
//! loop {
//!     D                           exposed: D comes before any barrier of its turn, so after the end of the one before
//!     barrier
//!     E                           since: E, which is what the next turn's D comes upon
//! }
//! ```

use std::collections::HashSet;
use std::hash::Hash;

use crate::ir::Region;

use super::Emitter;
use super::order::{Counted, Touch, Turn};
use super::shared::Use;

/// Accesses of one kind since the last barrier.
pub(super) struct Since<T> {
    done: Vec<T>,
    loops: Vec<Around<T>>,
}

/// A loop that is being emitted.
struct Around<T> {
    /// Was there surely a barrier since the body began?
    is_fenced: bool,
    /// What is done before that.
    exposed: Vec<T>,
}

/// What was done up to a place that other code goes on from, too.
pub(super) struct Place<T> {
    done: Vec<T>,
    fenced: Vec<bool>,
}

impl<T> Default for Since<T> {
    fn default() -> Self {
        Since { done: Vec::new(), loops: Vec::new() }
    }
}

impl<T: Clone + Eq + Hash> Since<T> {
    pub(super) fn done(&self) -> &[T] {
        &self.done
    }

    pub(super) fn note(&mut self, access: T) {
        if !self.done.contains(&access) {
            self.done.push(access);
        }
    }

    /// Something that must not come upon what the end of a loop around has left.
    pub(super) fn expose(&mut self, access: &T) {
        for around in self.loops.iter_mut().filter(|around| !around.is_fenced && !around.exposed.contains(access)) {
            around.exposed.push(access.clone());
        }
    }

    /// A barrier, which all is behind but for what it does not wait for.
    pub(super) fn fence(&mut self, outlasts: impl Fn(&T) -> bool) {
        self.done.retain(outlasts);
        self.loops.iter_mut().for_each(|around| around.is_fenced = true);
    }

    fn place(&self) -> Place<T> {
        Place { done: self.done.clone(), fenced: self.loops.iter().map(|around| around.is_fenced).collect() }
    }

    fn go_back(&mut self, place: &Place<T>) {
        self.done.clone_from(&place.done);
        self.loops.iter_mut().zip(&place.fenced).for_each(|(around, is_fenced)| around.is_fenced = *is_fenced);
    }

    /// Where two ways meet: what either has left, and only the barriers that both have passed.
    fn join(&mut self, other: Place<T>) {
        let known: HashSet<T> = self.done.iter().cloned().collect();
        self.done.extend(other.done.into_iter().filter(|access| !known.contains(access)));
        self.loops.iter_mut().zip(other.fenced).for_each(|(around, is_fenced)| around.is_fenced &= is_fenced);
    }

    fn begin_loop(&mut self) {
        self.loops.push(Around { is_fenced: false, exposed: Vec::new() });
    }

    /// What a next turn does before any barrier.
    fn end_loop(&mut self) -> Vec<T> {
        self.loops.pop().map_or(Vec::new(), |around| around.exposed)
    }
}

/// A place of the program, with all that is known of barriers there.
pub(super) struct Fork {
    shared: Place<Use>,
    touched: Place<Touch>,
}

/// A loop whose body is being emitted.
pub(super) struct Opened {
    front: Fork,
    turn: Turn,
}

impl Emitter<'_> {
    /// In front of code that may not run, or at the end of such.
    pub(super) fn fork(&self) -> Fork {
        Fork { shared: self.shared.uses.place(), touched: self.order.touched.place() }
    }

    /// Goes back to the fork, for the other arm.
    pub(super) fn go_back(&mut self, fork: &Fork) {
        self.shared.uses.go_back(&fork.shared);
        self.order.touched.go_back(&fork.touched);
    }

    pub(super) fn join(&mut self, other: Fork) {
        self.shared.uses.join(other.shared);
        self.order.touched.join(other.touched);
    }

    /// Begins a loop, in front of the code that enters it. One that counts has bounds and an index.
    pub(super) fn begin_loop(&mut self, counted: Option<Counted>, regions: &[Region]) -> Opened {
        let turn = self.order_loop(counted, regions);
        let front = self.fork();
        self.shared.uses.begin_loop();
        self.order.touched.begin_loop();
        // What was touched in front is behind every turn.
        self.order.touched.done.clear();
        Opened { front, turn }
    }

    /// At the end of a loop's body: the next turn may come upon what this one has done.
    pub(super) fn end_loop(&mut self, Opened { front, turn }: Opened) {
        let touched = self.order.touched.end_loop();
        self.order_turns(turn, &touched);
        let written = self.shared.uses.end_loop();
        self.end_shared_turn(&written);
        self.join(front);
    }
}
