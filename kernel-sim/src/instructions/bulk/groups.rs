//! Bulk groups of a thread: `cp.async.bulk.commit_group` and `wait_group` (PTX ISA, "Data movement: bulk async-group based completion").

use std::collections::{HashMap, VecDeque};

use super::super::{Form, Instruction, Progress, Unsupported, async_access};
use super::transfer::Store;
use crate::counters::Class;
use crate::fault::Trap;
use crate::machine::{AsyncOperation, Cx};
use crate::memory::Stamp;

/// The bulk groups of each thread of a cluster, indexed by rank, warp and lane.
pub(crate) type BulkGroups = HashMap<(usize, usize, usize), Groups>;

/// The bulk groups of a thread.
#[derive(Default)]
pub(crate) struct Groups {
    /// The number of the group that the next copy joins, which is the number of committed groups.
    current: u64,
    /// The group and the completion of each copy, oldest first.
    ends: VecDeque<(u64, End)>,
}

/// The clocks that a wait for a copy joins.
#[derive(Clone)]
pub(in crate::instructions) struct End {
    /// The completion of the reads of shared memory.
    pub(in crate::instructions) read: Stamp,
    /// The completion of the writes to global memory.
    pub(in crate::instructions) written: Stamp,
}

/// Adds a copy to the thread's current group, and returns the number of the group. A wait for the group joins the copy's completion.
pub(in crate::instructions) fn join(cx: &mut Cx<'_>, lane: usize, end: End) -> u64 {
    let groups = cx.cluster.bulk_groups.entry((cx.rank, cx.warp.index, lane)).or_default();
    groups.ends.push_back((groups.current, end));
    groups.current
}

struct Commit;

pub(super) fn commit() -> Box<dyn Instruction> {
    Box::new(Commit)
}

impl Instruction for Commit {
    fn execute(&self, cx: &mut Cx<'_>) -> Result<Progress, Trap> {
        for lane in cx.lanes {
            cx.cluster.bulk_groups.entry((cx.rank, cx.warp.index, lane)).or_default().current += 1;
        }
        Ok(Progress::Done)
    }

    fn class(&self) -> Class {
        Class::Barrier
    }
}

struct Wait {
    /// The number of most recent committed groups that may stay in flight.
    allowed: u64,
    /// Whether the wait only covers the reads of shared memory (`.read`).
    is_read: bool,
}

pub(super) fn wait(form: &mut Form<'_>) -> Result<Box<dyn Instruction>, Unsupported> {
    let is_read = form.flag("read");
    Ok(Box::new(Wait { allowed: form.immediate()?, is_read }))
}

impl Instruction for Wait {
    fn execute(&self, cx: &mut Cx<'_>) -> Result<Progress, Trap> {
        for lane in cx.lanes {
            let Some(groups) = cx.cluster.bulk_groups.get_mut(&(cx.rank, cx.warp.index, lane)) else { continue };
            let limit = groups.current.saturating_sub(self.allowed);
            let is_done = |group: u64| group < limit;
            let count = groups.ends.iter().take_while(|(group, _)| is_done(*group)).count();
            // A `.read` wait keeps the copies: a later wait for their writes needs them.
            let last = count.checked_sub(1).and_then(|last| groups.ends.get(last)).map(|(_, end)| end.clone());
            if !self.is_read {
                groups.ends.drain(..count);
            }
            self.finish(cx, lane, is_done)?;
            // Copies of a thread complete in order, so the clock of the last one includes all.
            if let Some(end) = last {
                async_access::acquire(cx, lane, &end.read);
                if !self.is_read {
                    async_access::acquire(cx, lane, &end.written);
                }
            }
        }
        Ok(Progress::Done)
    }

    fn class(&self) -> Class {
        Class::Barrier
    }
}

impl Wait {
    /// Performs the copies of the lane's groups that have not happened yet.
    fn finish(&self, cx: &mut Cx<'_>, lane: usize, is_done: impl Fn(u64) -> bool) -> Result<(), Trap> {
        let mut rest = VecDeque::new();
        for mut entry in std::mem::take(&mut cx.cluster.in_flight) {
            let issuer = entry.issuer;
            let is_own = (issuer.rank, issuer.warp, issuer.lane) == (cx.rank, cx.warp.index, lane);
            match entry.operation.as_any().downcast_mut::<Store>() {
                Some(store) if is_own && is_done(store.group) => {
                    if self.is_read {
                        store.read(cx.cluster).map_err(|kind| Trap::new(lane, kind).at(issuer.step))?;
                        rest.push_back(entry);
                    } else {
                        store.complete(cx.cluster, cx.grid, issuer).map_err(|trap| trap.at(issuer.step))?;
                    }
                }
                _ => rest.push_back(entry),
            }
        }
        cx.cluster.in_flight = rest;
        Ok(())
    }
}
