//! Which threads used which bytes of a memory last, to find accesses that nothing orders.
//!
//! Records exist for pages that were used only. A record is of as many bytes as the smallest access to its page so far: a warp that loads
//! 16 bytes a lane leaves 32 records, and one that later stores single bytes splits them, each part with the same past.
//!
//! Two weak stores of one source line by threads of one cluster that leave the same bytes do not race: a compiler stores an element that
//! several threads hold from each of them.

use std::collections::HashMap;
use std::ops::Range;

use crate::lanes::Lanes;
use crate::memory::clocks::{Agent, Clocks, Moment, Proxy, Unordered, View};
use crate::memory::past::{Compare, Lists, Mark, Mixed, Past};
use crate::memory::touch::{Scope, Touch};

/// Records of the bytes of one memory.
pub(crate) struct Shadow {
    /// What a proxy fence must have been for.
    fence: View,
    pages: Vec<Page>,
    /// Pages by their number: the address in units of [`PAGE`].
    index: HashMap<u64, u32, Mixed>,
    /// The page that was found last, and its number.
    last: (u64, u32),
    /// What accesses are there, so that an event needs a number only.
    sites: Vec<Site>,
    last_site: usize,
    /// By number; the first is none.
    events: Vec<Event>,
    last_event: u32,
    /// The last event of a row (and its cluster) at a site.
    latest: HashMap<((u32, u32), u32), u32, Mixed>,
    lists: Lists,
    /// With more events and lists than this, those that no record names are dropped.
    limit: usize,
}

/// The least such limit: some megabytes.
const MIN_LIMIT: usize = 1 << 17;

/// Bytes of a page.
pub(crate) const PAGE: u64 = 1024;

/// Records of the bytes of a page.
struct Page {
    /// A record has `1 << shift` bytes.
    shift: u32,
    records: Vec<Record>,
    is_written: bool,
}

/// What was done to some bytes, as far as it matters for what may be done next.
#[derive(Clone, Copy, Default)]
struct Record {
    writes: Past,
    /// Reads that are not ordered before one of the writes.
    reads: Past,
}

/// What is the same of accesses of several lanes: a row of the clocks of a cluster, a time and an instruction.
#[derive(Clone, Copy)]
struct Event {
    cluster: u32,
    /// The CTA in the cluster.
    rank: u32,
    moment: Moment,
    site: u32,
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct Site {
    touch: Touch,
    proxy: Proxy,
}

/// Two accesses that are not ordered.
#[derive(Debug)]
pub(crate) struct Conflict {
    /// The first byte that both use.
    pub(crate) address: u64,
    /// The earlier access: what it was, the cluster, the warp in it and the lane.
    pub(crate) touch: Touch,
    pub(crate) cluster: u32,
    pub(crate) warp: usize,
    pub(crate) lane: usize,
    /// What is missing, with a leading `: `.
    pub(crate) hint: &'static str,
}

/// How accesses of a cluster used some bytes, for the comparison with other clusters.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct Uses {
    pub(crate) weak_write: bool,
    /// Atomics and other strong accesses that all programs of the grid see.
    pub(crate) strong: bool,
    pub(crate) weak_read: bool,
}

/// An access while it is checked.
struct Check<'a> {
    agent: Agent<'a>,
    clocks: &'a Clocks,
    sites: &'a [Site],
    events: &'a [Event],
    fence: View,
    site: Site,
    rank: u32,
    mark: Mark,
}

impl Shadow {
    /// No bytes were used yet. The view says which proxy fence is for this memory.
    pub(crate) fn new(fence: View) -> Shadow {
        let nobody = Event { cluster: u32::MAX, rank: 0, moment: Moment::Tracked { number: 0, warp: 0, lane: 0 }, site: 0 };
        Shadow {
            fence,
            pages: Vec::new(),
            index: HashMap::default(),
            last: (u64::MAX, 0),
            sites: Vec::new(),
            last_site: 0,
            events: vec![nobody],
            last_event: 0,
            latest: HashMap::default(),
            lists: Lists::default(),
            limit: MIN_LIMIT,
        }
    }

    /// A read of these bytes.
    pub(crate) fn read(&mut self, agent: Agent<'_>, clocks: &Clocks, range: Range<u64>, touch: Touch) -> Result<(), Box<Conflict>> {
        self.visit(agent, clocks, touch, range, |check, lists, record, _| check.read(lists, record))
    }

    /// A write. `unchanged(range)` says whether it leaves these bytes as they are.
    pub(crate) fn write(
        &mut self,
        agent: Agent<'_>,
        clocks: &Clocks,
        range: Range<u64>,
        touch: Touch,
        unchanged: impl Fn(&Range<u64>) -> bool,
    ) -> Result<(), Box<Conflict>> {
        self.visit(agent, clocks, touch, range, |check, lists, record, bytes| check.write(lists, record, || unchanged(bytes)))
    }

    /// Was a byte of that page written? After this call it counts as written.
    pub(crate) fn is_first_write(&mut self, address: u64) -> bool {
        let page = self.page(address / PAGE);
        !std::mem::replace(&mut self.pages[page].is_written, true)
    }

    /// Visits what was used: the number of a page, and how each record of `1 << shift` bytes was used.
    pub(crate) fn each_page(&self, mut visit: impl FnMut(u64, u32, &[Uses])) {
        let mut uses = Vec::new();
        for (&number, &page) in &self.index {
            let page = &self.pages[page as usize];
            uses.clear();
            uses.extend(page.records.iter().map(|record| self.uses(record)));
            visit(number, page.shift, &uses);
        }
    }

    fn uses(&self, record: &Record) -> Uses {
        let is_strong = |mark: Mark| self.sites[self.events[mark.event as usize].site as usize].is_strong();
        let mut uses = Uses::default();
        for mark in self.lists.each(record.writes) {
            *(if is_strong(mark) { &mut uses.strong } else { &mut uses.weak_write }) = true;
        }
        for mark in self.lists.each(record.reads) {
            *(if is_strong(mark) { &mut uses.strong } else { &mut uses.weak_read }) = true;
        }
        uses
    }

    fn visit(
        &mut self,
        agent: Agent<'_>,
        clocks: &Clocks,
        touch: Touch,
        range: Range<u64>,
        visit: impl Fn(&Check<'_>, &mut Lists, &mut Record, &Range<u64>) -> Result<(), (Mark, Unordered)>,
    ) -> Result<(), Box<Conflict>> {
        let mark = self.mark(agent, clocks, touch);
        let mut start = range.start;
        while start < range.end {
            let end = range.end.min((start / PAGE + 1) * PAGE);
            let number = self.page(start / PAGE);
            let page = &mut self.pages[number];
            let unit = (start | end).trailing_zeros();
            if unit < page.shift {
                page.split(unit);
            }
            let event = &self.events[mark.event as usize];
            let check = Check {
                agent,
                clocks,
                sites: &self.sites,
                events: &self.events,
                fence: self.fence,
                site: self.sites[event.site as usize],
                rank: event.rank,
                mark,
            };
            let shift = page.shift;
            let first = ((start % PAGE) >> shift) as usize;
            let count = ((end - start) >> shift) as usize;
            let mut address = start;
            for record in &mut page.records[first..first + count] {
                let bytes = address..address + (1 << shift);
                address = bytes.end;
                if let Err((earlier, unordered)) = visit(&check, &mut self.lists, record, &bytes) {
                    return Err(Box::new(check.conflict(earlier, unordered, bytes.start)));
                }
            }
            start = end;
        }
        Ok(())
    }

    /// Names an access.
    fn mark(&mut self, agent: Agent<'_>, clocks: &Clocks, touch: Touch) -> Mark {
        let proxy = match agent {
            Agent::Thread { .. } => Proxy::Generic,
            Agent::Async(operation) => operation.proxy,
        };
        if self.events.len() + self.lists.len() > self.limit {
            self.collect();
        }
        let site = self.site(Site { touch, proxy });
        let (moment, lanes) = clocks.moment(agent).parted();
        let cluster = clocks.cluster();
        let is_same = |event: &Event| event.moment == moment && event.site == site && event.cluster == cluster;
        if is_same(&self.events[self.last_event as usize]) {
            return Mark { event: self.last_event, lanes };
        }
        let key = ((cluster, moment.row()), site);
        let next = self.events.len() as u32;
        let known = self.latest.get(&key).copied().filter(|&event| is_same(&self.events[event as usize]));
        let event = known.unwrap_or(next);
        if event == next {
            let warp = match agent {
                Agent::Thread { warp, .. } => warp,
                Agent::Async(operation) => operation.warp,
            };
            self.events.push(Event { cluster, rank: clocks.rank(warp) as u32, moment, site });
            self.latest.insert(key, event);
        }
        self.last_event = event;
        Mark { event, lanes }
    }

    /// Drops events and lists that no record names. A loop that waits makes new ones for as long as it does.
    fn collect(&mut self) {
        let mut events = vec![self.events[0]];
        let mut numbers = vec![0u32; self.events.len()];
        let mut renumbered = |event: u32| {
            let number = &mut numbers[event as usize];
            if *number == 0 {
                *number = events.len() as u32;
                events.push(self.events[event as usize]);
            }
            *number
        };
        let (mut lists, mut moved) = (Lists::default(), HashMap::default());
        for record in self.pages.iter_mut().flat_map(|page| &mut page.records) {
            for past in [&mut record.writes, &mut record.reads] {
                *past = match past.mark() {
                    Some(mark) => Past::of(Mark { event: renumbered(mark.event), ..mark }),
                    None => self.lists.move_to(*past, &mut lists, &mut moved, &mut renumbered),
                };
            }
        }
        self.latest.values_mut().for_each(|event| *event = numbers[*event as usize]);
        self.latest.retain(|_, event| *event != 0);
        (self.events, self.lists, self.last_event) = (events, lists, 0);
        self.limit = MIN_LIMIT.max(2 * (self.events.len() + self.lists.len()));
    }

    fn site(&mut self, site: Site) -> u32 {
        if self.sites.get(self.last_site) != Some(&site) {
            self.last_site = self.sites.iter().position(|known| *known == site).unwrap_or_else(|| {
                self.sites.push(site);
                self.sites.len() - 1
            });
        }
        self.last_site as u32
    }

    fn page(&mut self, number: u64) -> usize {
        if self.last.0 != number {
            let page = *self.index.entry(number).or_insert_with(|| {
                let shift = 4;
                self.pages.push(Page { shift, records: vec![Record::default(); (PAGE >> shift) as usize], is_written: false });
                self.pages.len() as u32 - 1
            });
            self.last = (number, page);
        }
        self.last.1 as usize
    }
}

impl Page {
    /// Makes records of `1 << shift` bytes.
    fn split(&mut self, shift: u32) {
        let parts = 1 << (self.shift - shift);
        self.records = self.records.iter().flat_map(|record| std::iter::repeat_n(*record, parts)).collect();
        self.shift = shift;
    }
}

impl Site {
    /// Do atomics of all programs of the grid go well with it?
    fn is_strong(&self) -> bool {
        self.touch.scope == Some(Scope::Gpu) && self.proxy == Proxy::Generic
    }
}

impl Check<'_> {
    fn read(&self, lists: &mut Lists, record: &mut Record) -> Result<(), (Mark, Unordered)> {
        self.after_all(lists, record.writes, true)?;
        record.reads = lists.add(record.reads, self.mark, self);
        Ok(())
    }

    fn write(&self, lists: &mut Lists, record: &mut Record, unchanged: impl Fn() -> bool) -> Result<(), (Mark, Unordered)> {
        let writes = self.after_all(lists, record.writes, true);
        if let Err(conflict) = writes {
            let is_harmless = lists.each(record.writes).all(|earlier| self.is_repeated(earlier) || self.after(earlier, true).is_ok());
            if !is_harmless || !unchanged() {
                return Err(conflict);
            }
        }
        self.after_all(lists, record.reads, false)?;
        if self.site.touch.scope.is_none() && writes.is_ok() {
            *record = Record { writes: Past::of(self.mark), reads: Past::NONE };
            return Ok(());
        }
        if self.site.touch.scope.is_none() {
            record.reads = Past::NONE;
        }
        record.writes = lists.add(record.writes, self.mark, self);
        Ok(())
    }

    /// Is this access ordered after all of these, as far as it matters?
    fn after_all(&self, lists: &Lists, past: Past, are_writes: bool) -> Result<(), (Mark, Unordered)> {
        if past.is_none() {
            return Ok(());
        }
        let after = |mark: Mark| self.after(mark, are_writes).map_err(|unordered| (mark, unordered));
        match past.mark() {
            Some(mark) if mark == self.mark && mark.lanes.count() == 1 && matches!(self.agent, Agent::Thread { .. }) => Ok(()),
            Some(mark) => after(mark),
            None if self.site.is_strong() => lists.each_racy(past, self).try_for_each(after),
            None => {
                // An atomic that this access comes after has seen those before it, and so this one comes after them, too (PTX ISA, 8.9,
                // "observation order" and "causality order").
                let mut is_seen = false;
                lists.each(past).try_for_each(|mark| {
                    let site = &self.sites[self.events[mark.event as usize].site as usize];
                    if is_seen && site.is_strong() {
                        return Ok(());
                    }
                    is_seen |= after(mark).map(|()| are_writes && site.is_strong() && site.touch.is_atomic)?;
                    Ok(())
                })
            }
        }
    }

    /// Is this access ordered after that one, or does it not matter?
    fn after(&self, earlier: Mark, is_write: bool) -> Result<(), Unordered> {
        let event = &self.events[earlier.event as usize];
        let site = &self.sites[event.site as usize];
        if self.both_strong(event, site) {
            return Ok(());
        }
        let needs_fence = is_write && site.proxy == Proxy::Generic && self.site.proxy == Proxy::Async;
        self.clocks.order(event.cluster, event.moment.of(earlier.lanes), self.agent, needs_fence.then_some(self.fence))
    }

    /// Are both strong, in the same proxy, and does each have a scope that includes the other's thread (PTX ISA, 8.5, "morally strong")?
    fn both_strong(&self, event: &Event, site: &Site) -> bool {
        let needed = self.common_scope(event);
        let includes = |scope: Option<Scope>| scope.is_some_and(|scope| scope >= needed);
        includes(self.site.touch.scope) && includes(site.touch.scope) && self.site.proxy == site.proxy
    }

    /// The narrowest scope that includes both threads.
    fn common_scope(&self, event: &Event) -> Scope {
        match (event.cluster == self.clocks.cluster(), event.rank == self.rank) {
            (true, true) => Scope::Cta,
            (true, false) => Scope::Cluster,
            (false, _) => Scope::Gpu,
        }
    }

    /// Is that a weak store of the same source line by a thread of the same cluster?
    fn is_repeated(&self, earlier: Mark) -> bool {
        let event = &self.events[earlier.event as usize];
        let site = self.sites[event.site as usize];
        let is_of_thread = matches!(self.agent, Agent::Thread { .. });
        is_of_thread && event.cluster == self.clocks.cluster() && site == self.site && site.touch.scope.is_none()
    }

    fn conflict(&self, earlier: Mark, unordered: Unordered, address: u64) -> Conflict {
        let event = &self.events[earlier.event as usize];
        let touch = self.sites[event.site as usize].touch;
        let (Unordered::Unknown { warp, lane } | Unordered::NotWaited { warp, lane } | Unordered::NotFenced { warp, lane }) = unordered;
        let own_warp = match self.agent {
            Agent::Thread { warp, .. } => warp,
            Agent::Async(operation) => operation.warp,
        };
        let is_own_cluster = event.cluster == self.clocks.cluster();
        let hint = match unordered {
            Unordered::NotFenced { .. } => ": `fence.proxy.async` is missing",
            Unordered::NotWaited { .. } if is_own_cluster => ": nothing waits for that asynchronous operation",
            Unordered::Unknown { .. } if earlier.event == self.mark.event => ": lanes of one instruction write different values",
            _ if touch.scope.is_some() && self.site.touch.scope.is_some() => ": the scope of one of them is too narrow",
            _ if !is_own_cluster => ": programs that share an element need atomics, or a release and an acquire between them",
            _ if warp == own_warp => ": `bar.warp.sync` or a barrier is missing",
            _ if self.clocks.same_cta(warp, own_warp) => ": a barrier is missing",
            _ => ": a barrier of the cluster is missing",
        };
        Conflict { address, touch, cluster: event.cluster, warp, lane, hint }
    }
}

impl Compare for Check<'_> {
    /// Is every access that comes after this one ordered after that one, too, and does every one that races with that one race with this?
    fn covers(&self, mark: Mark) -> bool {
        let event = &self.events[mark.event as usize];
        let site = &self.sites[event.site as usize];
        let races_as_much = match (self.site.touch.scope, site.touch.scope) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(own), Some(other)) => {
                let is_same_cta = self.common_scope(event) == Scope::Cta;
                other >= own && self.site.proxy == site.proxy && (is_same_cta || other == Scope::Gpu)
            }
        };
        races_as_much && self.clocks.order(event.cluster, event.moment.of(mark.lanes), self.agent, None).is_ok()
    }

    fn is_racy(&self, mark: Mark) -> bool {
        !self.sites[self.events[mark.event as usize].site as usize].is_strong()
    }

    fn row(&self, mark: Mark) -> (u32, u32) {
        let event = &self.events[mark.event as usize];
        (event.cluster, event.moment.row())
    }
}

impl Moment {
    /// A moment of no lanes, and the lanes.
    fn parted(self) -> (Moment, Lanes) {
        match self {
            Moment::Lanes { row, lanes, time } => (Moment::Lanes { row, lanes: Lanes::NONE, time }, lanes),
            Moment::Tracked { lane, .. } => (self, Lanes::of(lane.into())),
        }
    }

    /// The same moment of these lanes.
    fn of(self, lanes: Lanes) -> Moment {
        match self {
            Moment::Lanes { row, time, .. } => Moment::Lanes { row, lanes, time },
            Moment::Tracked { .. } => self,
        }
    }

    /// A number that only accesses of one row have, or those of an operation that an mbarrier follows.
    fn row(self) -> u32 {
        match self {
            Moment::Lanes { row, .. } => row,
            Moment::Tracked { number, .. } => 1 << 31 | number as u32,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lanes::WARP;

    fn read(shadow: &mut Shadow, clocks: &Clocks, lane: usize, line: u32) {
        shadow.read(Agent::Thread { warp: 0, lane }, clocks, 0..4, Touch::plain("load", line)).unwrap();
    }

    fn write(shadow: &mut Shadow, clocks: &Clocks, lane: usize) -> Result<(), Box<Conflict>> {
        shadow.write(Agent::Thread { warp: 0, lane }, clocks, 0..4, Touch::plain("store", 9), |_| false)
    }

    #[test]
    fn a_read_is_remembered_until_its_own_lane_reads_again() {
        let mut clocks = Clocks::new(1, [32, 1, 1]);
        let mut shadow = Shadow::new(View::AsyncShared);
        for lane in 0..4 {
            read(&mut shadow, &clocks, lane, lane as u32);
        }
        clocks.barrier(&[(0, Lanes::first(4).without(Lanes::of(0)))]);
        let conflict = write(&mut shadow, &clocks, 1).unwrap_err();
        assert_eq!((conflict.lane, conflict.touch.line), (0, 0));
    }

    #[test]
    fn reads_that_nothing_orders_do_not_pile_up() {
        let mut clocks = Clocks::new(1, [32, 1, 1]);
        let mut shadow = Shadow::new(View::AsyncShared);
        for _ in 0..1000 {
            (0..WARP).for_each(|lane| read(&mut shadow, &clocks, lane, 1));
            // Ends the time, so that the next reads are not of the same.
            clocks.release(0, 0);
        }
        let reads = shadow.lists.each(shadow.pages[0].records[0].reads).count();
        assert!(reads <= 100, "{reads} reads");
        assert!(write(&mut shadow, &clocks, 5).is_err());
    }

    #[test]
    fn a_loop_that_waits_does_not_fill_memory() {
        let mut clocks = Clocks::new(1, [128, 1, 1]);
        let mut shadow = Shadow::new(View::AsyncGlobal);
        shadow.limit = 500;
        let atomic = Touch { scope: Some(Scope::Gpu), ..Touch::plain("atomic", 2) };
        let other = Agent::Thread { warp: 3, lane: 9 };
        shadow.read(other, &clocks, 8..12, Touch::plain("load", 1)).unwrap();
        for round in 0..100_000 {
            let warp = round % 3;
            shadow.write(Agent::Thread { warp, lane: 0 }, &clocks, 0..4, atomic, |_| false).unwrap();
            clocks.release(warp, 0);
            assert!(shadow.events.len() + shadow.lists.len() <= MIN_LIMIT + 64);
        }
        let late = shadow.write(Agent::Thread { warp: 0, lane: 0 }, &clocks, 8..12, Touch::plain("store", 3), |_| false).unwrap_err();
        assert_eq!((late.warp, late.lane, late.touch.line), (3, 9, 1));
        let uses = |place: usize| shadow.uses(&shadow.pages[0].records[place]);
        assert_eq!(uses(0), Uses { strong: true, ..Uses::default() });
    }

    #[test]
    fn records_are_as_small_as_the_smallest_access() {
        let clocks = Clocks::new(1, [32, 1, 1]);
        let mut shadow = Shadow::new(View::AsyncShared);
        let agent = |lane| Agent::Thread { warp: 0, lane };
        let store = Touch::plain("store", 1);
        shadow.write(agent(0), &clocks, 0..16, store, |_| false).unwrap();
        assert_eq!(shadow.pages[0].shift, 4);
        shadow.write(agent(1), &clocks, 17..18, store, |_| false).unwrap();
        assert_eq!(shadow.pages[0].shift, 0);
        shadow.write(agent(2), &clocks, 18..19, store, |_| false).unwrap();
        let conflict = shadow.read(agent(2), &clocks, 12..16, Touch::plain("load", 2)).unwrap_err();
        assert_eq!((conflict.address, conflict.lane), (12, 0));
    }

    #[test]
    fn an_atomic_does_not_hide_the_weak_store_before_it() {
        let clocks = Clocks::new(1, [64, 1, 1]);
        let mut shadow = Shadow::new(View::AsyncGlobal);
        let atomic = Touch { scope: Some(Scope::Gpu), ..Touch::plain("atomic", 2) };
        let mut add = |warp| shadow.write(Agent::Thread { warp, lane: 0 }, &clocks, 0..4, atomic, |_| false);
        add(0).unwrap();
        add(1).unwrap();
        write(&mut shadow, &clocks, 0).unwrap_err();
        let mut shadow = Shadow::new(View::AsyncGlobal);
        write(&mut shadow, &clocks, 0).unwrap();
        let mut add = |warp| shadow.write(Agent::Thread { warp, lane: 0 }, &clocks, 0..4, atomic, |_| false);
        add(0).unwrap();
        assert_eq!(add(1).unwrap_err().touch.name, "store");
    }
}
