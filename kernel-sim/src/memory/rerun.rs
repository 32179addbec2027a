//! The record of a launch, for two purposes: to find races between its programs, and to run the launch again. It holds how each cluster
//! used memory, and the old contents of the written memory.
//!
//! Clusters that run in parallel on several cores have a [`Shadow`] each. At the end of a cluster its accesses are compared with those of
//! the other clusters. For each byte range the record stores which cluster wrote it, read it or used atomics on it, or that several did;
//! the result therefore does not depend on the order of clusters. The comparison only shows that there is a race. The launch is then run
//! again, one cluster after the other, to show both accesses.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::memory::global::{Allocation, GlobalView, Snapshot};
use crate::memory::past::Mixed;
use crate::memory::shadow::{PAGE, Shadow, Uses};

/// The record of a launch.
pub(crate) struct LaunchRecord {
    shards: Vec<Mutex<HashMap<u64, PageRecord, Mixed>>>,
    has_race: AtomicBool,
}

/// The number of shards, each with its own lock.
const SHARDS: u64 = 64;

#[derive(Default)]
struct PageRecord {
    /// The contents of the page before the first write.
    before: Option<Snapshot>,
    users: Option<Users>,
}

/// The clusters that accessed the records of a page.
enum Users {
    /// All records of the page were accessed in the same way.
    Whole(User),
    /// The access differs between records of `1 << shift` bytes.
    Each { shift: u32, users: Vec<User> },
}

/// The clusters that accessed a record, for each kind of access.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct User {
    weak_write: Who,
    strong: Who,
    weak_read: Who,
}

/// No cluster, one cluster, or several clusters.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Who(u32);

const SEVERAL: Who = Who(u32::MAX);

impl LaunchRecord {
    /// A record without accesses.
    pub(crate) fn new() -> LaunchRecord {
        LaunchRecord { shards: (0..SHARDS).map(|_| Mutex::default()).collect(), has_race: AtomicBool::new(false) }
    }

    /// Must be called before a cluster's first write to the page of an address in this allocation.
    pub(crate) fn before_write(&self, allocation: &Allocation, address: u64) {
        let number = address / PAGE;
        let mut shard = self.shard(number);
        let page = shard.entry(number).or_default();
        page.before.get_or_insert_with(|| allocation.snapshot(number * PAGE, PAGE));
    }

    /// Restores memory to its contents before the launch.
    pub(crate) fn restore(&self, memory: &GlobalView) {
        for shard in &self.shards {
            for page in shard.lock().unwrap_or_else(PoisonError::into_inner).values() {
                if let Some(before) = &page.before {
                    memory.restore(before);
                }
            }
        }
    }

    /// Adds the accesses of an ended cluster, and compares them with those of the other clusters.
    pub(crate) fn ended(&self, cluster: u32, shadow: &Shadow) {
        shadow.each_page(|number, shift, uses| {
            let mut shard = self.shard(number);
            let users = shard.entry(number).or_default().users.get_or_insert(Users::Whole(User::default()));
            if users.add(cluster, shift, uses) {
                self.has_race.store(true, Ordering::Relaxed);
            }
        });
    }

    /// Whether clusters raced with each other.
    pub(crate) fn has_race(&self) -> bool {
        self.has_race.load(Ordering::Relaxed)
    }

    fn shard(&self, number: u64) -> MutexGuard<'_, HashMap<u64, PageRecord, Mixed>> {
        self.shards[(number % SHARDS) as usize].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Users {
    /// Adds the accesses of a cluster to each record of the page. Returns true if there is a race with another cluster.
    fn add(&mut self, cluster: u32, shift: u32, uses: &[Uses]) -> bool {
        if let Users::Whole(user) = self
            && uses.iter().all(|other| *other == uses[0])
        {
            user.add(cluster, uses[0]);
            return user.has_race();
        }
        let finest = match self {
            Users::Whole(_) => shift,
            Users::Each { shift: own, .. } => shift.min(*own),
        };
        self.split(finest);
        let Users::Each { users, .. } = self else { return false };
        let mut has_race = false;
        for (index, user) in users.iter_mut().enumerate() {
            user.add(cluster, uses[index << finest >> shift]);
            has_race |= user.has_race();
        }
        has_race
    }

    fn split(&mut self, finest: u32) {
        let users = match self {
            Users::Whole(user) => vec![*user; (PAGE >> finest) as usize],
            Users::Each { shift, .. } if *shift == finest => return,
            Users::Each { shift, users } => users.iter().flat_map(|user| std::iter::repeat_n(*user, 1 << (*shift - finest))).collect(),
        };
        *self = Users::Each { shift: finest, users };
    }
}

impl User {
    fn add(&mut self, cluster: u32, uses: Uses) {
        let Uses { weak_write, strong, weak_read } = uses;
        for (who, is_used) in [(&mut self.weak_write, weak_write), (&mut self.strong, strong), (&mut self.weak_read, weak_read)] {
            if is_used {
                *who = if *who == Who::default() || *who == Who(cluster + 1) { Who(cluster + 1) } else { SEVERAL };
            }
        }
    }

    /// Whether one cluster wrote and another cluster accessed the record, and not both accesses are strong.
    fn has_race(&self) -> bool {
        let User { weak_write, strong, weak_read } = *self;
        weak_write.differs(weak_write) || weak_write.differs(strong) || weak_write.differs(weak_read) || strong.differs(weak_read)
    }
}

impl Who {
    /// Whether an access in `self` and an access in `other` are by different clusters.
    fn differs(self, other: Who) -> bool {
        let nobody = Who::default();
        self != nobody && other != nobody && (self == SEVERAL || self != other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WRITE: Uses = Uses { weak_write: true, strong: false, weak_read: false };
    const ATOMIC: Uses = Uses { weak_write: false, strong: true, weak_read: false };
    const READ: Uses = Uses { weak_write: false, strong: false, weak_read: true };
    const NOTHING: Uses = Uses { weak_write: false, strong: false, weak_read: false };

    fn has_race(uses: &[(u32, Uses)]) -> bool {
        let mut user = User::default();
        uses.iter().for_each(|&(cluster, uses)| user.add(cluster, uses));
        user.has_race()
    }

    #[test]
    fn two_clusters_race_unless_both_read_or_both_are_atomic() {
        for (first, second, expected) in [
            (WRITE, WRITE, true),
            (WRITE, READ, true),
            (WRITE, ATOMIC, true),
            (ATOMIC, READ, true),
            (ATOMIC, ATOMIC, false),
            (READ, READ, false),
            (WRITE, NOTHING, false),
        ] {
            assert_eq!(has_race(&[(3, first), (7, second)]), expected, "{first:?} {second:?}");
            assert_eq!(has_race(&[(7, second), (3, first)]), expected, "{second:?} {first:?}");
            assert!(!has_race(&[(3, first), (3, second)]), "one cluster is not compared with itself");
        }
        assert!(has_race(&[(0, READ), (1, READ), (0, WRITE)]));
    }

    #[test]
    fn records_of_two_sizes_are_compared_byte_by_byte() {
        let mut users = Users::Whole(User::default());
        let mut words = vec![NOTHING; 256];
        words[5] = WRITE;
        assert!(!users.add(0, 2, &words));
        let mut bytes = vec![NOTHING; 1024];
        bytes[19] = WRITE;
        bytes[24] = WRITE;
        assert!(!users.add(1, 0, &bytes));
        bytes[23] = READ;
        assert!(users.add(1, 0, &bytes));
    }
}
