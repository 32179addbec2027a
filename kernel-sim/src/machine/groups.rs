//! Divergence and reconvergence of the lanes of a warp.
//!
//! A warp is a set of groups, each with a next step of the program. A divergent branch suspends the group at the branch's immediate
//! post-dominator and creates two running groups. Lanes that reach this step join the suspended group. The suspended group continues when
//! no lane is missing.
//!
//! In contrast to a reconvergence stack, every group that is not suspended can run. Lanes can therefore wait for lanes on the other side of
//! a branch (ElTantawy et al., *A scalable multi-path microarchitecture for efficient GPU control flow*, 2014).

use crate::lanes::Lanes;

/// Lanes that run together.
#[derive(Clone, Debug)]
pub(crate) struct Group {
    /// The index of the next step.
    pub(crate) step: u32,
    pub(crate) lanes: Lanes,
    pub(crate) state: State,
    /// The group that the lanes join when they reach its step.
    parent: Option<usize>,
}

/// The state of a group. `since` is the time at which the group began to wait, as a count of the cluster's steps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum State {
    Running,
    /// Waits until this number of groups has joined it or ended.
    Suspended {
        missing: u32,
    },
    /// Waits until the event counter of the cluster exceeds `events`.
    Blocked {
        events: u64,
        since: u64,
    },
    /// Waits until all of these lanes have reached the same step.
    Meeting {
        lanes: Lanes,
        since: u64,
    },
    /// Waits until all live lanes have reached the same step.
    MeetingAll {
        since: u64,
    },
}

/// The groups of a warp.
#[derive(Debug)]
pub(crate) struct Groups {
    slots: Vec<Option<Group>>,
}

impl Groups {
    /// One group of all lanes, at the first step.
    pub(crate) fn new(lanes: Lanes) -> Groups {
        Groups { slots: vec![Some(Group { step: 0, lanes, state: State::Running, parent: None })] }
    }

    pub(crate) fn get(&self, group: usize) -> Option<&Group> {
        self.slots.get(group).and_then(Option::as_ref)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (usize, &Group)> {
        self.slots.iter().enumerate().filter_map(|(number, slot)| Some((number, slot.as_ref()?)))
    }

    pub(crate) fn set_state(&mut self, group: usize, state: State) {
        if let Some(group) = self.slots[group].as_mut() {
            group.state = state;
        }
    }

    /// The time at which a group began to wait; `None` if it does not wait.
    pub(crate) fn waits_since(&self, group: usize) -> Option<u64> {
        match self.get(group)?.state {
            State::Blocked { since, .. } | State::Meeting { since, .. } | State::MeetingAll { since } => Some(since),
            State::Running | State::Suspended { .. } => None,
        }
    }

    /// Sets the next step of a group.
    pub(crate) fn go(&mut self, group: usize, step: u32) {
        let Some(mover) = self.slots[group].as_mut() else { return };
        mover.step = step;
        mover.state = State::Running;
        self.join_if_there(group);
    }

    /// Splits a group: each set of lanes continues at its own step. The lanes reconverge at step `meeting`.
    pub(crate) fn part(&mut self, group: usize, ways: &[(Lanes, u32)], meeting: Option<u32>) {
        if let [(_, step)] = ways {
            return self.go(group, *step);
        }
        let Some(parted) = self.slots[group].clone() else { return };
        let at_parent = parted.parent.and_then(|parent| self.get(parent)).map(|parent| parent.step);
        if meeting.is_none() || meeting == at_parent {
            // The lanes reconverge at the parent's step, or never. Their new groups therefore have the same parent as the group.
            self.add_missing(parted.parent, ways.len() as u32);
            self.slots[group] = None;
            ways.iter().for_each(|&(lanes, step)| self.add(lanes, step, parted.parent));
            self.one_less_missing(parted.parent);
        } else if let Some(meeting) = meeting {
            let state = State::Suspended { missing: ways.len() as u32 };
            self.slots[group] = Some(Group { step: meeting, lanes: Lanes::NONE, state, parent: parted.parent });
            ways.iter().for_each(|&(lanes, step)| self.add(lanes, step, Some(group)));
        }
    }

    /// Ends some lanes of a group. The remaining lanes continue at `step`.
    pub(crate) fn end(&mut self, group: usize, ended: Lanes, step: u32) {
        let Some(ending) = self.slots[group].as_mut() else { return };
        ending.lanes = ending.lanes.without(ended);
        if ending.lanes.is_empty() {
            let parent = ending.parent;
            self.slots[group] = None;
            self.one_less_missing(parent);
        } else {
            self.go(group, step);
        }
    }

    fn add(&mut self, lanes: Lanes, step: u32, parent: Option<usize>) {
        let group = Some(Group { step, lanes, state: State::Running, parent });
        let number = self.slots.iter().position(Option::is_none).unwrap_or(self.slots.len());
        if number == self.slots.len() {
            self.slots.push(group);
        } else {
            self.slots[number] = group;
        }
        self.join_if_there(number);
    }

    fn join_if_there(&mut self, group: usize) {
        let Some(mover) = self.get(group) else { return };
        let (step, lanes, parent) = (mover.step, mover.lanes, mover.parent);
        let Some(number) = parent else { return };
        let Some(waiting) = self.slots[number].as_mut() else { return };
        if waiting.step == step {
            waiting.lanes = waiting.lanes.or(lanes);
            self.slots[group] = None;
            self.one_less_missing(parent);
        }
    }

    fn add_missing(&mut self, group: Option<usize>, count: u32) {
        if let Some(Group { state: State::Suspended { missing }, .. }) = group.and_then(|group| self.slots[group].as_mut()) {
            *missing += count;
        }
    }

    /// One part of a suspended group has joined it or ended.
    fn one_less_missing(&mut self, group: Option<usize>) {
        let Some(number) = group else { return };
        let Some(waiting) = self.slots[number].as_mut() else { return };
        let State::Suspended { missing } = &mut waiting.state else { return };
        *missing -= 1;
        if *missing > 0 {
            return;
        }
        if waiting.lanes.is_empty() {
            let parent = waiting.parent;
            self.slots[number] = None;
            self.one_less_missing(parent);
        } else {
            let step = waiting.step;
            self.go(number, step);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn running(groups: &Groups) -> Vec<(u32, u32)> {
        let mut all: Vec<(u32, u32)> =
            groups.iter().filter(|(_, group)| group.state == State::Running).map(|(_, group)| (group.lanes.0, group.step)).collect();
        all.sort_unstable();
        all
    }

    fn group_of(groups: &Groups, lanes: u32) -> usize {
        groups.iter().find(|(_, group)| group.lanes.0 == lanes && group.state == State::Running).unwrap().0
    }

    #[test]
    fn two_sides_meet() {
        let mut groups = Groups::new(Lanes(0xf));
        groups.part(0, &[(Lanes(3), 10), (Lanes(12), 20)], Some(30));
        assert_eq!(running(&groups), [(3, 10), (12, 20)]);
        groups.go(group_of(&groups, 3), 30);
        assert_eq!(running(&groups), [(12, 20)]);
        groups.go(group_of(&groups, 12), 30);
        assert_eq!(running(&groups), [(15, 30)]);
    }

    #[test]
    fn lanes_that_leave_a_loop_wait_for_the_others() {
        let mut groups = Groups::new(Lanes(7));
        // Step 5 is the loop's test, step 9 its exit.
        for round in [1, 2] {
            let group = group_of(&groups, 7 & !(round - 1));
            let stays = groups.get(group).unwrap().lanes.without(Lanes(round));
            groups.part(group, &[(Lanes(round), 9), (stays, 6)], Some(9));
            assert_eq!(running(&groups), [(stays.0, 6)]);
        }
        groups.go(group_of(&groups, 4), 9);
        assert_eq!(running(&groups), [(7, 9)]);
        assert_eq!(groups.iter().count(), 1);
    }

    #[test]
    fn lanes_that_end_are_not_waited_for() {
        let mut groups = Groups::new(Lanes(3));
        groups.part(0, &[(Lanes(1), 10), (Lanes(2), 20)], Some(30));
        groups.end(group_of(&groups, 1), Lanes(1), 11);
        groups.go(group_of(&groups, 2), 30);
        assert_eq!(running(&groups), [(2, 30)]);
        groups.end(group_of(&groups, 2), Lanes(2), 31);
        assert_eq!(groups.iter().count(), 0);
    }

    #[test]
    fn branches_nest() {
        let mut groups = Groups::new(Lanes(0xff));
        groups.part(0, &[(Lanes(0xf), 10), (Lanes(0xf0), 20)], Some(30));
        groups.part(group_of(&groups, 0xf), &[(Lanes(3), 11), (Lanes(12), 12)], Some(15));
        groups.go(group_of(&groups, 3), 15);
        groups.go(group_of(&groups, 12), 15);
        assert_eq!(running(&groups), [(0xf, 15), (0xf0, 20)]);
        groups.go(group_of(&groups, 0xf), 30);
        groups.go(group_of(&groups, 0xf0), 30);
        assert_eq!(running(&groups), [(0xff, 30)]);
    }
}
