//! Sets of accesses to a byte, each stored in one word.
//!
//! A set with the accesses of one instruction is stored inline. A larger set is a list in an arena. Equal lists that grew in the same way
//! are shared, because most bytes of a tensor have the same history. Lists are immutable, so the result of adding an access to a set is
//! computed once.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use crate::lanes::Lanes;

/// Accesses of some lanes of a warp in one instruction at one time.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Mark {
    /// The number of the event, from 1 on.
    pub(crate) event: u32,
    pub(crate) lanes: Lanes,
}

/// A set of accesses: empty, a mark, or the number of a list if the highest bit is set.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub(crate) struct Past(u64);

const LIST: u64 = 1 << 63;

/// The arena of lists of accesses.
#[derive(Default)]
pub(crate) struct Lists {
    nodes: Vec<Node>,
    /// Lists by their parts.
    known: HashMap<(Past, Mark), Past, Mixed>,
    /// The results of adding an access to a set.
    grown: HashMap<(Past, Mark), Past, Mixed>,
}

/// The newest access of a list, and the rest of the list.
struct Node {
    mark: Mark,
    below: Past,
    /// The longest tail of the list that begins with an access that may race with atomics.
    racy: Past,
    length: u32,
    /// From this length on, adding an access searches the whole list and drops outdated accesses.
    limit: u32,
}

/// The smallest [`Node::limit`]: for a shorter list, a new access is compared with [`FRONT`] accesses only.
const SHORT: u32 = 32;
/// The number of newest accesses that a new access is compared with in a list below its limit.
const FRONT: usize = 8;

/// The comparison of a new access with the accesses in a set.
pub(crate) trait Compare {
    /// Whether the new access makes this one redundant.
    fn covers(&self, mark: Mark) -> bool;
    /// Whether this access may race with an atomic of another program.
    fn is_racy(&self, mark: Mark) -> bool;
    /// The cluster and the clock row of an access: the warp that made it, its queue, or one operation that an mbarrier tracks. Accesses of one
    /// lane in one row are ordered, so a later one can make this one redundant.
    fn row(&self, mark: Mark) -> (u32, u32);
}

impl Past {
    pub(crate) const NONE: Past = Past(0);

    pub(crate) fn of(mark: Mark) -> Past {
        Past(u64::from(mark.event) << 32 | u64::from(mark.lanes.0))
    }

    pub(crate) fn is_none(self) -> bool {
        self.0 == 0
    }

    /// The mark, if the set consists of one mark.
    pub(crate) fn mark(self) -> Option<Mark> {
        (self.0 & LIST == 0 && self.0 != 0).then_some(Mark { event: (self.0 >> 32) as u32, lanes: Lanes(self.0 as u32) })
    }
}

impl Lists {
    /// The newest access of a set, and the rest.
    fn first(&self, past: Past) -> Option<(Mark, Past)> {
        match past.mark() {
            Some(mark) => Some((mark, Past::NONE)),
            None if past.is_none() => None,
            None => {
                let node = &self.nodes[(past.0 & !LIST) as usize];
                Some((node.mark, node.below))
            }
        }
    }

    /// All accesses of a set, newest first.
    pub(crate) fn each(&self, past: Past) -> impl Iterator<Item = Mark> {
        let mut rest = past;
        std::iter::from_fn(move || {
            let (mark, below) = self.first(rest)?;
            rest = below;
            Some(mark)
        })
    }

    /// The accesses of a set that may race with an atomic of another program.
    pub(crate) fn each_racy(&self, past: Past, compare: &impl Compare) -> impl Iterator<Item = Mark> {
        let mut rest = self.racy(past, compare);
        std::iter::from_fn(move || {
            let (mark, below) = self.first(rest)?;
            rest = self.racy(below, compare);
            Some(mark)
        })
    }

    fn racy(&self, past: Past, compare: &impl Compare) -> Past {
        match past.mark() {
            Some(mark) if compare.is_racy(mark) => past,
            Some(_) => Past::NONE,
            None if past.is_none() => past,
            None => self.nodes[(past.0 & !LIST) as usize].racy,
        }
    }

    /// The set with one more access.
    pub(crate) fn add(&mut self, past: Past, mark: Mark, compare: &impl Compare) -> Past {
        match past.mark() {
            None if past.is_none() => return Past::of(mark),
            Some(own) if own.event == mark.event => return Past::of(Mark { lanes: own.lanes.or(mark.lanes), ..mark }),
            Some(own) if compare.covers(own) => return Past::of(mark),
            _ => {}
        }
        if let Some(&grown) = self.grown.get(&(past, mark)) {
            return grown;
        }
        let grown = self.grow(past, mark, compare);
        self.grown.insert((past, mark), grown);
        grown
    }

    fn grow(&mut self, past: Past, mut mark: Mark, compare: &impl Compare) -> Past {
        let (length, limit) = self.extent(past);
        let mut kept = Vec::new();
        let mut rest = past;
        let looks = if length >= limit { usize::MAX } else { FRONT };
        for _ in 0..looks {
            let Some((own, below)) = self.first(rest) else { break };
            rest = below;
            if own.event == mark.event {
                mark.lanes = mark.lanes.or(own.lanes);
            } else if !compare.covers(own) {
                kept.push(own);
            }
        }
        let mut limit = limit;
        if looks == usize::MAX {
            self.drop_outdated(&mut kept, compare);
            limit = (2 * kept.len() as u32).max(SHORT);
        }
        let below = kept.into_iter().rev().fold(rest, |below, own| self.push(below, own, limit, compare));
        self.push(below, mark, limit, compare)
    }

    /// Drops accesses whose lanes all made the same access again later. The marks are sorted, newest first.
    fn drop_outdated(&self, marks: &mut Vec<Mark>, compare: &impl Compare) {
        // For each cluster and row: the lanes with any later access, and the lanes with a later access that races with atomics.
        let mut later: HashMap<(u32, u32), (Lanes, Lanes)> = HashMap::new();
        marks.retain(|&mark| {
            let (any, racy) = later.entry(compare.row(mark)).or_default();
            let is_racy = compare.is_racy(mark);
            let is_outdated = if is_racy { racy.contains(mark.lanes) } else { any.contains(mark.lanes) };
            *any = any.or(mark.lanes);
            if is_racy {
                *racy = racy.or(mark.lanes);
            }
            !is_outdated
        });
    }

    /// The number of lists.
    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Copies a set into another arena; `event` maps the numbers of events. Sets that are already copied are in `moved`.
    pub(crate) fn move_to(
        &self,
        past: Past,
        lists: &mut Lists,
        moved: &mut HashMap<Past, Past, Mixed>,
        event: &mut impl FnMut(u32) -> u32,
    ) -> Past {
        let mut chain = Vec::new();
        let mut rest = past;
        while !rest.is_none() && !moved.contains_key(&rest) {
            chain.push(rest);
            rest = self.first(rest).map_or(Past::NONE, |(_, below)| below);
        }
        for old in chain.into_iter().rev() {
            let new = match old.mark() {
                Some(mark) => Past::of(Mark { event: event(mark.event), ..mark }),
                None => {
                    let node = &self.nodes[(old.0 & !LIST) as usize];
                    let new = Past(LIST | lists.nodes.len() as u64);
                    let of = |past: Past| moved.get(&past).copied().unwrap_or_default();
                    let racy = if node.racy == old { new } else { of(node.racy) };
                    let mark = Mark { event: event(node.mark.event), ..node.mark };
                    lists.nodes.push(Node { mark, below: of(node.below), racy, ..*node });
                    new
                }
            };
            moved.insert(old, new);
        }
        moved.get(&past).copied().unwrap_or_default()
    }

    fn extent(&self, past: Past) -> (u32, u32) {
        match past.mark() {
            Some(_) => (1, SHORT),
            None if past.is_none() => (0, SHORT),
            None => {
                let node = &self.nodes[(past.0 & !LIST) as usize];
                (node.length, node.limit)
            }
        }
    }

    fn push(&mut self, below: Past, mark: Mark, limit: u32, compare: &impl Compare) -> Past {
        if below.is_none() {
            return Past::of(mark);
        }
        if let Some(&known) = self.known.get(&(below, mark)) {
            return known;
        }
        let past = Past(LIST | self.nodes.len() as u64);
        let racy = if compare.is_racy(mark) { past } else { self.racy(below, compare) };
        self.nodes.push(Node { mark, below, racy, length: self.extent(below).0 + 1, limit });
        self.known.insert((below, mark), past);
        past
    }
}

/// A fast hash of a few numbers: Fibonacci hashing (Knuth, TAOCP 6.4), with the high bits folded down.
#[derive(Default)]
pub(crate) struct Mixer(u64);

/// Makes [`Mixer`]s.
pub(crate) type Mixed = BuildHasherDefault<Mixer>;

impl Hasher for Mixer {
    fn finish(&self) -> u64 {
        self.0 ^ self.0 >> 32
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u64(byte.into()));
    }

    fn write_u32(&mut self, number: u32) {
        self.write_u64(number.into());
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0.rotate_left(23) ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}
