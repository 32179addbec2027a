//! Shadow memory: the last accesses to each byte of a memory, to find conflicting accesses without happens-before.
//!
//! Only used pages have records. The size of a record is the smallest access to its page so far. A warp that loads 16 bytes per lane
//! creates 32 records. If it later stores single bytes, the records are split, and each part inherits the history.
//!
//! Two weak stores of one source line by threads of one cluster do not race if the second store leaves the bytes unchanged: if several
//! threads hold the same element, the compiler lets each of them store it.

use std::collections::HashMap;
use std::ops::Range;

use crate::lanes::Lanes;
use crate::memory::clocks::{Agent, Clocks, Moment, Proxy, Unordered, View};
use crate::memory::past::{Compare, Lists, Mark, Mixed, Past};
use crate::memory::touch::{Scope, Touch};

/// The records of the bytes of one memory.
pub(crate) struct Shadow {
    /// The proxy fence that this memory needs.
    fence: View,
    pages: Vec<Page>,
    /// Page indices by page number, which is the address divided by [`PAGE`].
    index: HashMap<u64, u32, Mixed>,
    /// The number of the last looked-up page, and its index.
    last: (u64, u32),
    /// Access sites. Events store only the index of a site.
    sites: Vec<Site>,
    last_site: usize,
    /// Events by number; event 0 is a placeholder for no event.
    events: Vec<Event>,
    last_event: u32,
    /// The last event for each cluster, row and site.
    latest: HashMap<((u32, u32), u32), u32, Mixed>,
    lists: Lists,
    /// The total number of events and lists above which unreferenced ones are dropped.
    limit: usize,
}

/// The minimum of `limit`, which takes a few megabytes.
const MIN_LIMIT: usize = 1 << 17;

/// The size of a page in bytes.
pub(crate) const PAGE: u64 = 1024;

/// The records of the bytes of a page.
struct Page {
    /// The size of a record is `1 << shift` bytes.
    shift: u32,
    records: Vec<Record>,
    is_written: bool,
}

/// The earlier accesses to some bytes that later accesses are checked against.
#[derive(Clone, Copy, Default)]
struct Record {
    writes: Past,
    /// The reads that do not happen before one of the writes.
    reads: Past,
}

/// The common properties of accesses of several lanes: a row of a cluster's clocks, a time and an instruction.
#[derive(Clone, Copy)]
struct Event {
    cluster: u32,
    /// The rank of the CTA in the cluster.
    rank: u32,
    moment: Moment,
    site: u32,
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct Site {
    touch: Touch,
    proxy: Proxy,
}

/// Two conflicting accesses that are not ordered.
#[derive(Debug)]
pub(crate) struct Conflict {
    /// The address of the first common byte.
    pub(crate) address: u64,
    /// The earlier access; the fields below have its cluster, the warp in the cluster, and the lane.
    pub(crate) touch: Touch,
    pub(crate) cluster: u32,
    pub(crate) warp: usize,
    pub(crate) lane: usize,
    /// The missing synchronisation, with a leading `: `.
    pub(crate) hint: &'static str,
}

/// The kinds of accesses of a cluster to some bytes, for the comparison with other clusters.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct Uses {
    pub(crate) weak_write: bool,
    /// Atomics and other strong accesses of GPU scope.
    pub(crate) strong: bool,
    pub(crate) weak_read: bool,
}

/// An access that is being checked.
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
    /// A shadow memory without accesses. `fence` is the proxy fence that this memory needs.
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

    /// Records and checks a read of these bytes.
    pub(crate) fn read(&mut self, agent: Agent<'_>, clocks: &Clocks, range: Range<u64>, touch: Touch) -> Result<(), Box<Conflict>> {
        self.visit(agent, clocks, touch, range, |check, lists, record, _| check.read(lists, record))
    }

    /// Records and checks a write of these bytes. `unchanged(range)` returns whether the write leaves the bytes of a range unchanged.
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

    /// Returns true at the first call for a page, and marks the page as written.
    pub(crate) fn is_first_write(&mut self, address: u64) -> bool {
        let page = self.page(address / PAGE);
        !std::mem::replace(&mut self.pages[page].is_written, true)
    }

    /// Visits each used page: its number, and the accesses to each record of `1 << shift` bytes.
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

    /// The mark of an access. Creates an event if necessary.
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

    /// Drops events and lists that no record references. A polling loop would otherwise create new ones without limit.
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
    /// Splits the records into records of `1 << shift` bytes.
    fn split(&mut self, shift: u32) {
        let parts = 1 << (self.shift - shift);
        self.records = self.records.iter().flat_map(|record| std::iter::repeat_n(*record, parts)).collect();
        self.shift = shift;
    }
}

impl Site {
    /// Whether atomics of all programs of the grid are compatible with this access.
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

    /// Checks that this access is ordered after each of the accesses in `past` that it conflicts with.
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
                // An atomic that happens before this access has observed the strong accesses before it. These therefore happen before this
                // access, too (PTX ISA, 8.9, "observation order" and "causality order").
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

    /// Checks that this access is ordered after the earlier one, or that the pair needs no order.
    fn after(&self, earlier: Mark, is_write: bool) -> Result<(), Unordered> {
        let event = &self.events[earlier.event as usize];
        let site = &self.sites[event.site as usize];
        if self.both_strong(event, site) {
            return Ok(());
        }
        let needs_fence = is_write && site.proxy == Proxy::Generic && self.site.proxy == Proxy::Async;
        self.clocks.order(event.cluster, event.moment.of(earlier.lanes), self.agent, needs_fence.then_some(self.fence))
    }

    /// Whether both accesses are morally strong: both are strong, in the same proxy, and the scope of each includes the other's thread (PTX
    /// ISA, 8.5).
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

    /// Whether the earlier access is a weak store of the same source line by a thread of the same cluster.
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
    /// Two conditions: every access ordered after this one is also ordered after the earlier one, and every access that races with the
    /// earlier one races with this one.
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
    /// Splits a moment into a moment without lanes, and the lanes.
    fn parted(self) -> (Moment, Lanes) {
        match self {
            Moment::Lanes { row, lanes, time } => (Moment::Lanes { row, lanes: Lanes::NONE, time }, lanes),
            Moment::Tracked { lane, .. } => (self, Lanes::of(lane.into())),
        }
    }

    /// The same moment with these lanes.
    fn of(self, lanes: Lanes) -> Moment {
        match self {
            Moment::Lanes { row, time, .. } => Moment::Lanes { row, lanes, time },
            Moment::Tracked { .. } => self,
        }
    }

    /// A number that identifies the row of the access, or the operation that an mbarrier tracks.
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
            // Advances the time, so that the next reads belong to another event.
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
        let uses = |index: usize| shadow.uses(&shadow.pages[0].records[index]);
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
