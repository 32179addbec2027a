//! Vector clocks: for each lane of each warp, the time up to which all its operations are known, and a set of completed operations.

use std::sync::Arc;

use crate::lanes::{Lanes, WARP};

/// A vector clock. A row is a warp, or a queue of asynchronous operations of a warp. A single time represents all 32 lanes of a row as long
/// as they agree.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct VectorClock {
    /// Indexed by row: the time up to which all lanes are known. Trailing rows with time 0 may be missing.
    all: Vec<u32>,
    /// The rows of which some lanes are known further, sorted.
    some: Vec<(u32, Box<[u32; WARP]>)>,
    /// The operations that are known to be complete: ranges of their numbers, first and last, sorted and not adjacent.
    operations: Vec<(u64, u64)>,
    /// The clocks of other clusters.
    others: Clusters,
}

/// The clocks of several clusters, in ascending order of the cluster number. Each of these clocks has an empty `others`.
pub(crate) type Clusters = Vec<(u32, Arc<VectorClock>)>;

impl VectorClock {
    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty() && self.some.is_empty() && self.operations.is_empty() && self.others.is_empty()
    }

    /// Adds all operations of these lanes up to this time.
    pub(crate) fn learn(&mut self, row: usize, lanes: Lanes, time: u32) {
        if self.of_all(row) >= time {
            return;
        }
        if lanes == Lanes::ALL {
            if self.all.len() <= row {
                self.all.resize(row + 1, 0);
            }
            self.all[row] = time;
            if let Ok(index) = self.find_row(row) {
                self.normalise(index);
            }
            return;
        }
        let all = self.of_all(row);
        let index = match self.find_row(row) {
            Ok(index) => index,
            Err(index) => {
                self.some.insert(index, (row as u32, Box::new([all; WARP])));
                index
            }
        };
        let times = &mut self.some[index].1;
        lanes.into_iter().for_each(|lane| times[lane] = times[lane].max(time));
        self.normalise(index);
    }

    /// Adds a completed operation.
    pub(crate) fn learn_operation(&mut self, number: u64) {
        self.join_operations(&[(number, number)]);
    }

    /// Joins another clock.
    pub(crate) fn join(&mut self, other: &VectorClock) {
        if self.all.len() < other.all.len() {
            self.all.resize(other.all.len(), 0);
        }
        for (row, times) in &mut self.some {
            let all = other.of_all(*row as usize);
            times.iter_mut().for_each(|time| *time = (*time).max(all));
        }
        for (own, &time) in self.all.iter_mut().zip(&other.all) {
            *own = (*own).max(time);
        }
        for (row, times) in &other.some {
            let all = self.of_all(*row as usize);
            match self.find_row(*row as usize) {
                Ok(index) => self.some[index].1.iter_mut().zip(times.iter()).for_each(|(own, &time)| *own = (*own).max(time)),
                Err(index) if times.iter().any(|&time| time > all) => self.some.insert(index, (*row, times.clone())),
                Err(_) => {}
            }
        }
        for index in (0..self.some.len()).rev() {
            self.normalise(index);
        }
        if !other.operations.is_empty() && self.operations != other.operations {
            self.join_operations(&other.operations);
        }
        join_clusters(&mut self.others, &other.others);
    }

    /// The clock of another cluster.
    pub(crate) fn of_cluster(&self, cluster: u32) -> Option<&Arc<VectorClock>> {
        find(&self.others, cluster)
    }

    /// Converts the clock of a thread in this cluster for readers in any cluster.
    pub(crate) fn spread(self: &Arc<VectorClock>, cluster: u32) -> Clusters {
        if self.is_empty() {
            return Vec::new();
        }
        if self.others.is_empty() {
            return vec![(cluster, self.clone())];
        }
        let mut clusters = self.others.clone();
        let own = Arc::new(VectorClock { others: Vec::new(), ..VectorClock::clone(self) });
        join_clusters(&mut clusters, &[(cluster, own)]);
        clusters
    }

    /// Converts published clocks for a reader in this cluster.
    pub(crate) fn gathered(clusters: &Clusters, cluster: u32) -> Arc<VectorClock> {
        let own = find(clusters, cluster).cloned().unwrap_or_default();
        if clusters.iter().all(|&(number, _)| number == cluster) {
            return own;
        }
        let others = clusters.iter().filter(|&&(number, _)| number != cluster).cloned().collect();
        Arc::new(VectorClock { others, ..Arc::unwrap_or_clone(own) })
    }

    /// The first of these lanes that is not known up to this time.
    pub(crate) fn first_unknown(&self, row: usize, lanes: Lanes, time: u32) -> Option<usize> {
        if lanes.is_empty() || self.of_all(row) >= time {
            return None;
        }
        match self.find_row(row) {
            Ok(index) => lanes.into_iter().find(|&lane| self.some[index].1[lane] < time),
            Err(_) => lanes.lowest(),
        }
    }

    pub(crate) fn knows_operation(&self, number: u64) -> bool {
        let after = self.operations.partition_point(|&(first, _)| first <= number);
        after > 0 && self.operations[after - 1].1 >= number
    }

    fn of_all(&self, row: usize) -> u32 {
        self.all.get(row).copied().unwrap_or(0)
    }

    /// The index of a row in `some`, or the index at which to insert the row.
    fn find_row(&self, row: usize) -> Result<usize, usize> {
        self.some.binary_search_by_key(&(row as u32), |&(known, _)| known)
    }

    /// Brings a row with different times to its shortest representation.
    fn normalise(&mut self, index: usize) {
        let row = self.some[index].0 as usize;
        let all = self.of_all(row);
        let times = &mut self.some[index].1;
        times.iter_mut().for_each(|time| *time = (*time).max(all));
        let least = times.iter().copied().min().unwrap_or(0);
        let most = times.iter().copied().max().unwrap_or(0);
        if least > all {
            if self.all.len() <= row {
                self.all.resize(row + 1, 0);
            }
            self.all[row] = least;
        }
        if least == most {
            self.some.remove(index);
        }
    }

    fn join_operations(&mut self, others: &[(u64, u64)]) {
        let mut both = Vec::with_capacity(self.operations.len() + others.len());
        let (mut own, mut other) = (self.operations.iter().peekable(), others.iter().peekable());
        while let Some(&range) = match (own.peek(), other.peek()) {
            (Some(left), Some(right)) if left <= right => own.next(),
            (Some(_), None) => own.next(),
            _ => other.next(),
        } {
            match both.last_mut() {
                Some((_, last)) if range.0 <= *last + 1 => *last = range.1.max(*last),
                _ => both.push(range),
            }
        }
        self.operations = both;
    }
}

fn find(clusters: &Clusters, cluster: u32) -> Option<&Arc<VectorClock>> {
    clusters.binary_search_by_key(&cluster, |&(number, _)| number).ok().map(|index| &clusters[index].1)
}

/// Joins the clocks of other clusters.
pub(crate) fn join_clusters(own: &mut Clusters, others: &[(u32, Arc<VectorClock>)]) {
    if own.is_empty() {
        own.extend_from_slice(others);
        return;
    }
    let mut missing = Vec::new();
    let mut index = 0;
    for (cluster, other) in others {
        index += own[index..].partition_point(|(number, _)| number < cluster);
        match own.get_mut(index) {
            Some((number, vector_clock)) if number == cluster => {
                if !Arc::ptr_eq(vector_clock, other) {
                    Arc::make_mut(vector_clock).join(other);
                }
            }
            _ => missing.push((*cluster, other.clone())),
        }
    }
    if !missing.is_empty() {
        own.extend(missing);
        own.sort_unstable_by_key(|&(number, _)| number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_that_agree_become_one_time() {
        let mut known = VectorClock::default();
        known.learn(3, Lanes::first(16), 7);
        assert_eq!(known.first_unknown(3, Lanes::first(16), 7), None);
        assert_eq!(known.first_unknown(3, Lanes::ALL, 7), Some(16));
        assert_eq!(known.first_unknown(3, Lanes::of(2), 8), Some(2));
        known.learn(3, Lanes::ALL.without(Lanes::first(16)), 7);
        assert_eq!(known, VectorClock { all: vec![0, 0, 0, 7], ..VectorClock::default() });
    }

    #[test]
    fn a_join_knows_what_either_knew() {
        let mut left = VectorClock::default();
        left.learn(0, Lanes::ALL, 4);
        left.learn(1, Lanes::of(5), 9);
        let mut right = VectorClock::default();
        right.learn(0, Lanes::of(1), 6);
        right.learn(1, Lanes::ALL, 8);
        left.join(&right);
        assert_eq!(left.first_unknown(0, Lanes::ALL, 4), None);
        assert_eq!(left.first_unknown(0, Lanes::of(1), 6), None);
        assert_eq!(left.first_unknown(0, Lanes::ALL, 6), Some(0));
        assert_eq!(left.first_unknown(1, Lanes::ALL, 8), None);
        assert_eq!(left.first_unknown(1, Lanes::of(5), 9), None);
        assert_eq!(left.first_unknown(1, Lanes::of(6), 9), Some(6));
    }

    #[test]
    fn operations_that_follow_each_other_become_one_range() {
        let mut known = VectorClock::default();
        for number in [1, 3, 5, 4] {
            known.learn_operation(number);
        }
        assert_eq!(known.operations, [(1, 1), (3, 5)]);
        assert!(!known.knows_operation(2) && known.knows_operation(4) && !known.knows_operation(6) && !known.knows_operation(0));
        known.learn_operation(2);
        assert_eq!(known.operations, [(1, 5)]);
    }
}
