//! Who used which bytes of shared memory last, to find accesses that nothing orders.
//!
//! Four bytes share one record until an access uses a part of them. Records exist for what was used only.

use std::ops::Range;

use crate::fault::FaultKind;
use crate::memory::clocks::{Agent, Clocks, Moment, Proxy, Unordered};

/// An access, as messages show it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Touch {
    /// `load`, `store` and their like.
    pub(crate) name: &'static str,
    /// The source line.
    pub(crate) line: u32,
    /// Is it strong? Two strong accesses do not race.
    pub(crate) strong: bool,
}

impl Touch {
    /// An access that is not strong.
    pub(crate) fn plain(name: &'static str, line: u32) -> Touch {
        Touch { name, line, strong: false }
    }
}

/// Records of the bytes of one CTA's shared memory.
#[derive(Default)]
pub(crate) struct Shadow {
    pages: Vec<Option<Box<[Granule; GRANULES]>>>,
    /// What accesses are there, so that a record needs a number only.
    sites: Vec<Site>,
    last_site: usize,
}

/// Bytes that share a record.
const BYTES: usize = 4;
/// Granules of a page.
const GRANULES: usize = 256;

enum Granule {
    Whole(Record),
    Split(Box<[Record; BYTES]>),
}

/// What was done to a byte, as far as it matters for what may be done next.
#[derive(Clone, Default)]
struct Record {
    write: Option<Mark>,
    /// Reads after that write, none of them known to another.
    reads: Reads,
}

#[derive(Clone, Default)]
enum Reads {
    #[default]
    None,
    One(Mark),
    Many(Vec<Mark>),
}

#[derive(Clone, Copy, PartialEq)]
struct Mark {
    moment: Moment,
    site: u32,
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct Site {
    touch: Touch,
    proxy: Proxy,
}

/// An access while it is checked.
struct Check<'a> {
    agent: Agent<'a>,
    clocks: &'a Clocks,
    sites: &'a [Site],
    site: Site,
    mark: Mark,
}

impl Shadow {
    /// A read of these bytes.
    pub(crate) fn read(&mut self, agent: Agent<'_>, clocks: &Clocks, range: Range<usize>, touch: Touch) -> Result<(), FaultKind> {
        self.visit(agent, clocks, touch, range, |check, record, _| check.read(record))
    }

    /// A write. `unchanged(range)` tells whether it leaves these bytes as they are.
    pub(crate) fn write(
        &mut self,
        agent: Agent<'_>,
        clocks: &Clocks,
        range: Range<usize>,
        touch: Touch,
        unchanged: impl Fn(&Range<usize>) -> bool,
    ) -> Result<(), FaultKind> {
        self.visit(agent, clocks, touch, range, |check, record, bytes| check.write(record, || unchanged(bytes)))
    }

    fn visit(
        &mut self,
        agent: Agent<'_>,
        clocks: &Clocks,
        touch: Touch,
        range: Range<usize>,
        visit: impl Fn(&Check<'_>, &mut Record, &Range<usize>) -> Result<(), Conflict>,
    ) -> Result<(), FaultKind> {
        let proxy = match agent {
            Agent::Thread { .. } => Proxy::Generic,
            Agent::Async(operation) => operation.proxy,
        };
        let site = Site { touch, proxy };
        let number = self.site(site);
        let mark = Mark { moment: clocks.moment(agent), site: number };
        let check = Check { agent, clocks, sites: &self.sites, site, mark };
        let mut place = range.start;
        while place < range.end {
            let start = place / BYTES * BYTES;
            let end = range.end.min(start + BYTES);
            let page = place / (BYTES * GRANULES);
            if self.pages.len() <= page {
                self.pages.resize_with(page + 1, || None);
            }
            let page = self.pages[page].get_or_insert_with(|| Box::new(std::array::from_fn(|_| Granule::Whole(Record::default()))));
            let granule = &mut page[place / BYTES % GRANULES];
            let result = match granule {
                Granule::Whole(record) if end - place == BYTES => visit(&check, record, &(place..end)),
                Granule::Split(records) if end - place == BYTES => {
                    let result = (place..end).try_for_each(|byte| visit(&check, &mut records[byte % BYTES], &(byte..byte + 1)));
                    // Mostly all bytes have the same past now.
                    if records.iter().all(|record| record.is_only(&check.mark)) {
                        *granule = Granule::Whole(std::mem::take(&mut records[0]));
                    }
                    result
                }
                _ => {
                    let records = granule.split();
                    (place..end).try_for_each(|byte| visit(&check, &mut records[byte % BYTES], &(byte..byte + 1)))
                }
            };
            result.map_err(|conflict| check.fault(conflict, place))?;
            place = end;
        }
        Ok(())
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
}

/// Two accesses that are not ordered: the earlier one, and why.
struct Conflict {
    earlier: Mark,
    unordered: Unordered,
    is_one_instruction: bool,
}

impl Record {
    /// Is a write of that moment all that is known of it?
    fn is_only(&self, mark: &Mark) -> bool {
        matches!(self.reads, Reads::None) && self.write.is_some_and(|write| write == *mark)
    }
}

impl Granule {
    fn split(&mut self) -> &mut [Record; BYTES] {
        if let Granule::Whole(record) = self {
            let record = std::mem::take(record);
            *self = Granule::Split(Box::new(std::array::from_fn(|_| record.clone())));
        }
        match self {
            Granule::Split(records) => records,
            Granule::Whole(_) => unreachable!("it was split just now"),
        }
    }
}

/// Drops reads whose lanes all read again later.
fn drop_outdated(marks: &mut Vec<Mark>, sites: &[Site]) {
    for place in (0..marks.len().saturating_sub(1)).rev() {
        let Moment::Lanes { row, lanes, time } = marks[place].moment else { continue };
        let is_strong = |mark: &Mark| sites[mark.site as usize].touch.strong;
        let is_covered = marks[place + 1..].iter().any(|later| match later.moment {
            Moment::Lanes { row: own, lanes: all, time: now } => {
                own == row && now >= time && all.contains(lanes) && is_strong(&marks[place]) >= is_strong(later)
            }
            Moment::Tracked { .. } => false,
        });
        if is_covered {
            marks.remove(place);
        }
    }
}

impl Check<'_> {
    fn read(&self, record: &mut Record) -> Result<(), Conflict> {
        if let Some(write) = record.write {
            self.after(write, true)?;
        }
        match &mut record.reads {
            Reads::None => record.reads = Reads::One(self.mark),
            Reads::One(mark) => {
                if self.is_beside(mark) {
                    *mark = self.joined(mark);
                } else if self.covers(mark) {
                    *mark = self.mark;
                } else {
                    record.reads = Reads::Many(vec![*mark, self.mark]);
                }
            }
            Reads::Many(marks) => {
                if let Some(mark) = marks.iter_mut().rev().find(|mark| self.is_beside(mark)) {
                    *mark = self.joined(mark);
                    return Ok(());
                }
                marks.retain(|mark| !self.covers(mark));
                drop_outdated(marks, self.sites);
                marks.push(self.mark);
            }
        }
        Ok(())
    }

    fn write(&self, record: &mut Record, unchanged: impl Fn() -> bool) -> Result<(), Conflict> {
        if let Some(write) = record.write
            && let Err(conflict) = self.after(write, true)
        {
            // Lanes of one instruction may write the same value to the same place.
            if !(conflict.is_one_instruction && unchanged()) {
                return Err(conflict);
            }
        }
        match &record.reads {
            Reads::None => {}
            Reads::One(read) => self.after(*read, false)?,
            Reads::Many(reads) => reads.iter().try_for_each(|read| self.after(*read, false))?,
        }
        record.reads = Reads::None;
        record.write = match &record.write {
            Some(write) if self.is_beside(write) => Some(self.joined(write)),
            _ => Some(self.mark),
        };
        Ok(())
    }

    /// Is this access ordered after that one, or does it not matter?
    fn after(&self, earlier: Mark, is_write: bool) -> Result<(), Conflict> {
        let site = self.sites[earlier.site as usize];
        if self.site.touch.strong && site.touch.strong {
            return Ok(());
        }
        let needs_fence = is_write && site.proxy == Proxy::Generic && self.site.proxy == Proxy::Async;
        self.clocks.order(earlier.moment, self.agent, needs_fence).map_err(|unordered| {
            let is_one_instruction = self.is_beside(&earlier);
            Conflict { earlier, unordered, is_one_instruction }
        })
    }

    /// Is that mark of the same instruction and time of other lanes of the warp?
    fn is_beside(&self, mark: &Mark) -> bool {
        match (mark.moment, self.mark.moment) {
            (Moment::Lanes { row, time, .. }, Moment::Lanes { row: own, time: now, .. }) => {
                row == own && time == now && mark.site == self.mark.site
            }
            _ => false,
        }
    }

    /// A mark that its instruction left for other lanes, with this lane too.
    fn joined(&self, mark: &Mark) -> Mark {
        match (mark.moment, self.mark.moment) {
            (Moment::Lanes { row, lanes, time }, Moment::Lanes { lanes: own, .. }) => {
                Mark { moment: Moment::Lanes { row, lanes: lanes.or(own), time }, site: mark.site }
            }
            _ => self.mark,
        }
    }

    /// Does whoever is ordered after this access come after that one too?
    fn covers(&self, mark: &Mark) -> bool {
        let site = self.sites[mark.site as usize];
        (site.touch.strong || !self.site.touch.strong) && self.clocks.order(mark.moment, self.agent, false).is_ok()
    }

    fn fault(&self, conflict: Conflict, place: usize) -> FaultKind {
        let earlier = self.sites[conflict.earlier.site as usize];
        let (warp, lane) = match conflict.unordered {
            Unordered::Unknown { warp, lane } | Unordered::NotWaited { warp, lane } | Unordered::NotFenced { warp, lane } => (warp, lane),
        };
        let own_warp = match self.agent {
            Agent::Thread { warp, .. } => warp,
            Agent::Async(operation) => operation.warp,
        };
        let hint = match conflict.unordered {
            Unordered::NotFenced { .. } => ": `fence.proxy.async` is missing",
            Unordered::NotWaited { .. } => ": nothing waits for that asynchronous operation",
            Unordered::Unknown { .. } if conflict.is_one_instruction => ": lanes of one instruction write different values",
            Unordered::Unknown { .. } if warp == own_warp => ": `bar.warp.sync` or a barrier is missing",
            Unordered::Unknown { .. } if self.clocks.same_cta(warp, own_warp) => ": a barrier is missing",
            Unordered::Unknown { .. } => ": a barrier of the cluster is missing",
        };
        FaultKind::SharedRace {
            address: place as u64,
            access: self.site.touch.name,
            other_access: earlier.touch.name,
            other_thread: self.clocks.thread(warp, lane),
            other_line: earlier.touch.line,
            hint,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lanes::{Lanes, WARP};

    fn read(shadow: &mut Shadow, clocks: &Clocks, lane: usize, line: u32) {
        shadow.read(Agent::Thread { warp: 0, lane }, clocks, 0..4, Touch::plain("load", line)).unwrap();
    }

    fn write(shadow: &mut Shadow, clocks: &Clocks, lane: usize) -> Result<(), FaultKind> {
        shadow.write(Agent::Thread { warp: 0, lane }, clocks, 0..4, Touch::plain("store", 9), |_| false)
    }

    #[test]
    fn a_read_is_remembered_until_its_own_lane_reads_again() {
        let mut clocks = Clocks::new(1, [32, 1, 1]);
        let mut shadow = Shadow::default();
        for lane in 0..4 {
            read(&mut shadow, &clocks, lane, lane as u32);
        }
        clocks.barrier(&[(0, Lanes::first(4).without(Lanes::of(0)))]);
        let fault = write(&mut shadow, &clocks, 1).unwrap_err();
        assert!(matches!(fault, FaultKind::SharedRace { other_thread: [0, 0, 0], other_line: 0, .. }), "{fault}");
    }

    #[test]
    fn reads_that_nothing_orders_do_not_pile_up() {
        let mut clocks = Clocks::new(1, [32, 1, 1]);
        let mut shadow = Shadow::default();
        for _ in 0..100 {
            (0..WARP).for_each(|lane| read(&mut shadow, &clocks, lane, 1));
            // Ends the time, so that the next reads are not of the same.
            clocks.release(0, 0);
        }
        let Some(Granule::Whole(Record { reads: Reads::Many(marks), .. })) = shadow.pages[0].as_ref().map(|page| &page[0]) else {
            panic!("many reads of one granule are wanted");
        };
        assert!(marks.len() <= 3, "{} marks", marks.len());
        assert!(write(&mut shadow, &clocks, 5).is_err());
    }

    #[test]
    fn a_write_of_the_whole_granule_makes_it_one_again() {
        let clocks = Clocks::new(1, [32, 1, 1]);
        let mut shadow = Shadow::default();
        shadow.write(Agent::Thread { warp: 0, lane: 0 }, &clocks, 1..2, Touch::plain("store", 1), |_| false).unwrap();
        let is_split = |shadow: &Shadow| matches!(shadow.pages[0].as_ref().map(|page| &page[0]), Some(Granule::Split(_)));
        assert!(is_split(&shadow));
        write(&mut shadow, &clocks, 0).unwrap();
        assert!(!is_split(&shadow));
    }
}
