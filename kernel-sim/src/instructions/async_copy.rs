//! `cp.async` and its groups: asynchronous copies from global to shared memory (PTX ISA, 9.7.9.25.3).
//!
//! The simulator reads the bytes and checks the accesses when the copy is issued. Only the happens-before order arrives later: until a
//! wait, no thread may access the destination ([`FaultKind::PendingAsync`]). After the wait, the copy happens before later operations of
//! the waiting thread. Accesses of other threads must be ordered after this wait.
//!
//! [`FaultKind::PendingAsync`]: crate::fault::FaultKind::PendingAsync

use std::any::Any;
use std::collections::VecDeque;
use std::ops::Range;

use crate::counters::Class;
use crate::fault::{FaultKind, Trap};
use crate::instructions::hints::{self, Allowed};
use crate::instructions::{Address, Form, Instruction, Progress, Unsupported, Value, async_access, mbarrier};
use crate::lanes::{Lanes, Row, WARP, WideRow};
use crate::machine::{Access, AsyncOperation, Cluster, Cx, Grid, InFlight, Issuer, Location};
use crate::memory::{Agent, Operation, Proxy, Queue, Stamp, Touch};
use crate::ptx::{Operand, Space, Type};

/// The copies of a warp's threads without a completed wait.
#[derive(Default)]
pub(crate) struct Copies {
    lanes: [LaneCopies; WARP],
}

#[derive(Default)]
struct LaneCopies {
    /// The copies issued since the last `commit_group`.
    open: Vec<Flying>,
    /// The committed groups, oldest first. A group may be empty.
    groups: VecDeque<Vec<Flying>>,
    /// The number of `cp.async.mbarrier.arrive` executed so far.
    arrivals: u64,
}

/// A copy in flight.
struct Flying {
    rank: usize,
    range: Range<u64>,
    owner: Issuer,
    operation: Operation,
}

/// `cp.async.ca` and `.cg`
struct Copy {
    destination: Address,
    source: Address,
    bytes: u32,
    size: Size,
    policy: Option<Value>,
}

/// The number of bytes that a copy reads. The rest of the destination is zero-filled.
enum Size {
    Whole,
    /// This number of bytes.
    Bytes(Value),
    /// No bytes, if the predicate is true.
    Ignore(Value),
}

/// `cp.async.commit_group`
struct Commit;

/// `cp.async.wait_group` and `wait_all`
struct Wait {
    /// The number of committed groups that may stay in flight.
    allowed: usize,
    /// Whether the wait includes copies that are not committed.
    is_all: bool,
}

/// `cp.async.mbarrier.arrive`
struct Arrive {
    address: Address,
    /// Whether the arrival also increments the pending count of the phase. `.noinc` makes this false.
    is_counted: bool,
}

/// An arrival at an mbarrier after these copies.
struct Arriving {
    /// The number of this arrival among those of the thread.
    number: u64,
    copies: Vec<Flying>,
    mbarrier: async_access::SharedLocation,
    stamp: Stamp,
}

/// Decodes `cp`.
pub(crate) fn decode(form: &mut Form<'_>) -> Result<Box<dyn Instruction>, Unsupported> {
    if !form.flag("async") {
        return Err(form.error("`cp` is always `cp.async`"));
    }
    if form.flag("commit_group") {
        return Ok(Box::new(Commit));
    }
    if form.flag("wait_all") {
        return Ok(Box::new(Wait { allowed: 0, is_all: true }));
    }
    if form.flag("wait_group") {
        return Ok(Box::new(Wait { allowed: form.immediate()? as usize, is_all: false }));
    }
    if form.flag("mbarrier") {
        return decode_arrive(form);
    }
    decode_copy(form)
}

fn decode_arrive(form: &mut Form<'_>) -> Result<Box<dyn Instruction>, Unsupported> {
    if !form.flag("arrive") {
        return Err(form.error("`cp.async.mbarrier` is always `cp.async.mbarrier.arrive`"));
    }
    let is_counted = !form.flag("noinc");
    let space = if form.flag("shared") || form.flag("shared::cta") { Space::Shared } else { Space::Generic };
    if form.ty()? != Type::B64 {
        return Err(form.error("an mbarrier is a `.b64`"));
    }
    Ok(Box::new(Arrive { address: form.address(space)?, is_counted }))
}

fn decode_copy(form: &mut Form<'_>) -> Result<Box<dyn Instruction>, Unsupported> {
    let level1 = form.one_of(&[("ca", true), ("cg", false)]);
    let level1 = level1.ok_or_else(|| form.error("`cp.async` needs a cache operator: `.ca` or `.cg`"))?;
    if form.has(&["shared::cluster"]) || form.space() != Space::Shared || !form.flag("global") {
        return Err(form.error("`cp.async` copies to `.shared` from `.global`"));
    }
    let hints = hints::take(form, Space::Global, Allowed { operators: &[], level1: false, prefetch: true })?;
    let destination = form.address(Space::Shared)?;
    let source = form.address(Space::Global)?;
    let bytes = form.immediate()?;
    match (level1, bytes) {
        (true, 4 | 8 | 16) | (false, 16) => {}
        (true, _) => return Err(form.error(format!("`cp.async.ca` copies 4, 8 or 16 bytes, not {bytes}"))),
        (false, _) => return Err(form.error(format!("`cp.async.cg` copies 16 bytes, not {bytes}"))),
    }
    let has_size = form.operands_left() > usize::from(hints.has_policy);
    let size = if has_size { decode_size(form, bytes)? } else { Size::Whole };
    let policy = hints.policy(form)?;
    Ok(Box::new(Copy { destination, source, bytes: bytes as u32, size, policy }))
}

/// The optional size operand: a predicate that ignores the source, or a number of bytes.
fn decode_size(form: &mut Form<'_>, bytes: u64) -> Result<Size, Unsupported> {
    let operand = form.operand()?;
    match operand {
        Operand::Int(size) if *size > bytes => Err(form.error(format!("{size} of {bytes} bytes can not be read"))),
        Operand::Not(_) => Ok(Size::Ignore(form.as_source(operand, Type::Pred, false)?)),
        _ if form.register_type(operand) == Some(Type::Pred) => Ok(Size::Ignore(form.as_source(operand, Type::Pred, false)?)),
        _ => Ok(Size::Bytes(form.as_source(operand, Type::U32, false)?)),
    }
}

impl Instruction for Copy {
    fn execute(&self, cx: &mut Cx<'_>) -> Result<Progress, Trap> {
        let (targets, sources) = (cx.addresses(self.destination)?, cx.addresses(self.source)?);
        if let Some(policy) = self.policy {
            cx.read(policy)?;
        }
        let sizes = self.sizes(cx)?;
        check_alignment(cx.lanes, Space::Shared, &targets, self.bytes)?;
        check_alignment(cx.lanes.filter(|lane| sizes[lane] > 0), Space::Global, &sources, self.bytes)?;
        let warp = cx.cluster.clocks.warp(cx.rank, cx.warp.index);
        let mut operations: [Option<Operation>; WARP] = Default::default();
        for lane in cx.lanes {
            operations[lane] = Some(cx.cluster.clocks.issue(warp, lane, Proxy::Generic, Queue::Copy));
        }
        let values = load(cx, &sources, &sizes, &operations)?;
        let line = cx.line;
        cx.cluster.counters.at(line).shared.record_store(cx.lanes, &targets, self.bytes);
        for lane in cx.lanes {
            if let Some(operation) = operations[lane].take() {
                store(cx, lane, targets[lane], self.bytes, values[lane], operation).map_err(|kind| Trap::new(lane, kind))?;
            }
        }
        Ok(Progress::Done)
    }

    fn class(&self) -> Class {
        Class::Memory
    }
}

impl Copy {
    /// The number of bytes that each lane reads.
    fn sizes(&self, cx: &Cx<'_>) -> Result<[u32; WARP], Trap> {
        match self.size {
            Size::Whole => Ok([self.bytes; WARP]),
            Size::Ignore(predicate) => Ok(cx.read(predicate)?.map(|ignore| if ignore != 0 { 0 } else { self.bytes })),
            Size::Bytes(size) => {
                let row = cx.read(size)?;
                match cx.lanes.into_iter().find(|&lane| row[lane] > u64::from(self.bytes)) {
                    Some(lane) => Err(cx.illegal(lane, format!("an asynchronous copy of {} bytes reads {}", self.bytes, row[lane]))),
                    None => Ok(row.map(|size| size as u32)),
                }
            }
        }
    }
}

fn check_alignment(lanes: Lanes, space: Space, addresses: &Row, alignment: u32) -> Result<(), Trap> {
    match lanes.into_iter().find(|&lane| !addresses[lane].is_multiple_of(u64::from(alignment))) {
        Some(lane) => Err(Trap::new(lane, FaultKind::Misaligned { space, address: addresses[lane], alignment })),
        None => Ok(()),
    }
}

/// Reads the source of each lane, padded with zeros. Lanes that read the same number of bytes make one access. Other sizes than powers of
/// two are read in parts, larger parts first, so that each part is aligned.
fn load(cx: &mut Cx<'_>, sources: &Row, sizes: &[u32; WARP], operations: &[Option<Operation>]) -> Result<WideRow, Trap> {
    let lanes = cx.lanes;
    let mut values = [0; WARP];
    let mut rest = lanes;
    let result = loop {
        let Some(first) = rest.lowest() else { break Ok(values) };
        let same = rest.filter(|lane| sizes[lane] == sizes[first]);
        rest = rest.without(same);
        cx.lanes = same;
        if let Err(trap) = load_parts(cx, sources, sizes[first], operations, &mut values) {
            break Err(trap);
        }
    };
    cx.lanes = lanes;
    result
}

fn load_parts(cx: &mut Cx<'_>, sources: &Row, size: u32, operations: &[Option<Operation>], values: &mut WideRow) -> Result<(), Trap> {
    let mut offset = 0;
    while offset < size {
        let bytes = 1 << (size - offset).ilog2();
        let addresses = sources.map(|address| address.wrapping_add(u64::from(offset)));
        let loaded = cx.load_asynchronously(Access::plain("asynchronous copy", Space::Global, bytes), &addresses, operations)?;
        cx.lanes.into_iter().for_each(|lane| values[lane] |= loaded[lane] << (8 * offset));
        offset += bytes;
    }
    Ok(())
}

/// Writes the destination of a lane, and marks it as pending until a wait.
fn store(cx: &mut Cx<'_>, lane: usize, address: u64, bytes: u32, value: u128, operation: Operation) -> Result<(), FaultKind> {
    let Location::Shared { rank, offset } = cx.resolve(Space::Shared, address)? else {
        return Err(FaultKind::Illegal { reason: format!("{address:#x} is no address in shared memory") });
    };
    let owner = cx.issuer(lane);
    let line = cx.line.line;
    let Cluster { ctas, clocks, .. } = &mut *cx.cluster;
    let shared = &mut ctas[rank].shared;
    shared.store(Agent::Async(&operation), clocks, offset, bytes, value, Touch::plain("asynchronous copy", line))?;
    let range = offset..offset + u64::from(bytes);
    shared.mark_pending(range.clone(), "an asynchronous copy", line, owner);
    cx.warp.copies.lanes[lane].open.push(Flying { rank, range, owner, operation });
    Ok(())
}

impl Instruction for Commit {
    fn execute(&self, cx: &mut Cx<'_>) -> Result<Progress, Trap> {
        for lane in cx.lanes {
            let copies = &mut cx.warp.copies.lanes[lane];
            copies.groups.push_back(std::mem::take(&mut copies.open));
        }
        Ok(Progress::Done)
    }

    fn class(&self) -> Class {
        Class::Memory
    }
}

impl Instruction for Wait {
    fn execute(&self, cx: &mut Cx<'_>) -> Result<Progress, Trap> {
        let warp = cx.cluster.clocks.warp(cx.rank, cx.warp.index);
        for lane in cx.lanes {
            let copies = &mut cx.warp.copies.lanes[lane];
            let count = copies.groups.len().saturating_sub(self.allowed);
            let mut done: Vec<Flying> = copies.groups.drain(..count).flatten().collect();
            if self.is_all {
                done.append(&mut copies.open);
            }
            // The copies that an mbarrier tracks are older than these. The arrival itself stays in flight.
            let issuer = cx.issuer(lane);
            done.splice(..0, followed(cx.cluster, issuer, u64::MAX));
            if let Some(last) = arrive(cx.cluster, &done) {
                // Copies of a thread complete in order, so the clock of the last one includes all.
                let stamp = last.operation.done();
                cx.cluster.clocks.acquire(warp, lane, &stamp);
            }
        }
        Ok(Progress::Done)
    }

    fn class(&self) -> Class {
        Class::Barrier
    }
}

impl Instruction for Arrive {
    fn execute(&self, cx: &mut Cx<'_>) -> Result<Progress, Trap> {
        let addresses = cx.addresses(self.address)?;
        for lane in cx.lanes {
            let location = async_access::shared_location(cx, lane, self.address.space, addresses[lane], 8, 8)?;
            let trap = |kind| Trap::new(lane, kind);
            mbarrier::check_issue(cx, lane, location).map_err(trap)?;
            if self.is_counted {
                mbarrier::add_pending(cx.cluster, location).map_err(trap)?;
            }
            let issuer = cx.issuer(lane);
            let own = &mut cx.warp.copies.lanes[lane];
            // The groups stay as empty groups: a later `wait_group` still counts them.
            let mut copies: Vec<Flying> = own.groups.iter_mut().flat_map(std::mem::take).collect();
            copies.append(&mut own.open);
            // The arrival belongs to the copies, not to the thread: it releases only the copies, no other operation of the thread.
            let stamp = copies.last().map_or_else(Stamp::default, |last| last.operation.done());
            own.arrivals += 1;
            let operation = Box::new(Arriving { number: own.arrivals, copies, mbarrier: location, stamp });
            cx.cluster.in_flight.push_back(InFlight { issuer, operation });
        }
        Ok(Progress::Done)
    }

    fn class(&self) -> Class {
        Class::Barrier
    }
}

impl AsyncOperation for Arriving {
    fn complete(&mut self, cluster: &mut Cluster, _: &Grid, issuer: Issuer) -> Result<(), Trap> {
        // All earlier copies of the thread are complete, too.
        let earlier = followed(cluster, issuer, self.number);
        arrive(cluster, &earlier);
        arrive(cluster, &self.copies);
        mbarrier::arrive_later(cluster, self.mbarrier, &self.stamp).map_err(|kind| Trap::new(issuer.lane, kind))
    }

    fn as_any(&mut self) -> &mut dyn Any {
        self
    }
}

/// Takes the copies of a thread that its earlier mbarrier arrivals (numbers below `before`) track.
fn followed(cluster: &mut Cluster, issuer: Issuer, before: u64) -> Vec<Flying> {
    let is_own = |other: Issuer| (other.rank, other.warp, other.lane) == (issuer.rank, issuer.warp, issuer.lane);
    let own = cluster.in_flight.iter_mut().filter(|flying| is_own(flying.issuer));
    let arrivals = own.filter_map(|flying| flying.operation.as_any().downcast_mut::<Arriving>());
    arrivals.filter(|arriving| arriving.number < before).flat_map(|arriving| std::mem::take(&mut arriving.copies)).collect()
}

/// Completes copies: their destinations are accessible again. Returns the last one.
fn arrive<'a>(cluster: &mut Cluster, copies: &'a [Flying]) -> Option<&'a Flying> {
    for copy in copies {
        cluster.ctas[copy.rank].shared.clear_pending(copy.range.clone(), copy.owner);
    }
    copies.last()
}

#[cfg(test)]
mod tests {
    use crate::fault::FaultKind;
    use crate::instructions::harness::{Failure, Harness};
    use crate::memory::GlobalMemory;
    use crate::ptx::{Space, Type};

    /// 512 initialised bytes of global memory at `%src`, 16 bytes for each lane, with ascending words; and 512 initialised bytes of shared
    /// memory at `%dst`.
    fn harness() -> Harness {
        let memory = GlobalMemory::new(1 << 20);
        let address = memory.allocate(512).expect("there is free memory");
        memory.write(address, &(0..128u32).flat_map(u32::to_le_bytes).collect::<Vec<u8>>()).expect("it is allocated");
        let mut harness = Harness::new();
        harness.grid.global = memory.view();
        harness.define("%src", Type::U64, |lane| address + 16 * lane as u64);
        harness.define("%dst", Type::U32, |lane| 16 * lane as u64);
        harness.define("%size", Type::U32, |lane| lane as u64 % 17);
        harness.define("%ignore", Type::Pred, |lane| lane as u64 % 2);
        for name in ["%a", "%b", "%c", "%d"] {
            harness.declare(name, Type::U32);
        }
        run(&mut harness, "st.shared.v4.u32 [%dst], {-1, -1, -1, -1};");
        harness
    }

    fn run(harness: &mut Harness, text: &str) {
        if let Err(failure) = harness.run(text) {
            panic!("{text} {failure:?}");
        }
    }

    /// The four words of each lane in shared memory.
    fn words(harness: &mut Harness) -> Vec<[u64; 4]> {
        run(harness, "ld.shared.v4.u32 {%a, %b, %c, %d}, [%dst];");
        let [a, b, c, d] = ["%a", "%b", "%c", "%d"].map(|name| harness.value(name));
        (0..32).map(|lane| [a[lane], b[lane], c[lane], d[lane]]).collect()
    }

    fn is_pending(harness: &mut Harness) -> bool {
        match harness.run("ld.shared.u32 %a, [%dst];") {
            Ok(_) => false,
            Err(Failure::Trap(0, FaultKind::PendingAsync { space: Space::Shared, address: 0, .. })) => true,
            Err(failure) => panic!("{failure:?}"),
        }
    }

    #[test]
    fn a_copy_is_there_after_its_wait() {
        let mut harness = harness();
        run(&mut harness, "cp.async.cg.shared.global [%dst], [%src], 16;");
        assert!(is_pending(&mut harness));
        // The copy belongs to no group yet, so a wait for all groups does not include it.
        run(&mut harness, "cp.async.wait_group 0;");
        assert!(is_pending(&mut harness));
        run(&mut harness, "cp.async.commit_group;");
        assert!(is_pending(&mut harness));
        run(&mut harness, "cp.async.wait_group 1;");
        assert!(is_pending(&mut harness));
        run(&mut harness, "cp.async.wait_group 0;");
        let expected: Vec<_> = (0..32).map(|lane| [0, 1, 2, 3].map(|word| 4 * lane + word)).collect();
        assert_eq!(words(&mut harness), expected);
    }

    #[test]
    fn a_wait_leaves_the_youngest_groups() {
        let mut harness = harness();
        run(&mut harness, "cp.async.ca.shared.global [%dst], [%src], 4;");
        run(&mut harness, "cp.async.commit_group;");
        run(&mut harness, "cp.async.ca.shared.global [%dst+4], [%src+4], 4;");
        run(&mut harness, "cp.async.commit_group;");
        // An empty group counts.
        run(&mut harness, "cp.async.commit_group;");
        run(&mut harness, "cp.async.wait_group 2;");
        assert!(!is_pending(&mut harness));
        assert!(harness.run("ld.shared.u32 %a, [%dst+4];").is_err());
        run(&mut harness, "cp.async.wait_group 1;");
        assert_eq!(words(&mut harness)[1], [4, 5, 0xffff_ffff, 0xffff_ffff]);
    }

    #[test]
    fn wait_all_waits_for_copies_without_a_group() {
        let mut harness = harness();
        run(&mut harness, "cp.async.ca.shared.global [%dst], [%src], 8;");
        run(&mut harness, "cp.async.wait_all;");
        assert_eq!(words(&mut harness)[2], [8, 9, 0xffff_ffff, 0xffff_ffff]);
    }

    #[test]
    fn bytes_that_are_not_read_are_zero() {
        let mut harness = harness();
        run(&mut harness, "cp.async.cg.shared.global [%dst], [%src], 16, %size;");
        run(&mut harness, "cp.async.wait_all;");
        let found = words(&mut harness);
        for (lane, found) in (0..32).zip(found) {
            let mut bytes: Vec<u8> = (4 * lane..4 * lane + 4).flat_map(u32::to_le_bytes).collect();
            bytes[lane as usize % 17..].fill(0);
            let word = |word: usize| u64::from(u32::from_le_bytes(std::array::from_fn(|byte| bytes[4 * word + byte])));
            assert_eq!(found, [0, 1, 2, 3].map(word), "lane {lane}");
        }
        run(&mut harness, "cp.async.ca.shared.global [%dst], [%src], 4, %ignore;");
        run(&mut harness, "cp.async.wait_all;");
        let found = words(&mut harness);
        assert_eq!([found[6][0], found[7][0]], [24, 0]);
    }

    #[test]
    fn a_source_that_is_not_read_may_be_anywhere() {
        let mut harness = harness();
        harness.define("%src", Type::U64, |_| 0x16);
        run(&mut harness, "cp.async.cg.shared.global [%dst], [%src], 16, 0;");
        let outside = harness.run("cp.async.ca.shared.global [%dst], [%src+2], 8, 4;");
        assert!(matches!(outside, Err(Failure::Trap(0, FaultKind::OutOfBounds { space: Space::Global, .. }))), "{outside:?}");
        let odd = harness.run("cp.async.ca.shared.global [%dst], [%src], 4;");
        assert!(matches!(odd, Err(Failure::Trap(0, FaultKind::Misaligned { space: Space::Global, .. }))), "{odd:?}");
        harness.define("%size", Type::U32, |_| 17);
        assert!(matches!(
            harness.run("cp.async.cg.shared.global [%dst], [%src], 16, %size;"),
            Err(Failure::Trap(0, FaultKind::Illegal { .. }))
        ));
    }

    #[test]
    fn two_copies_to_one_location_are_a_race() {
        let mut harness = harness();
        run(&mut harness, "cp.async.cg.shared.global [%dst], [%src], 16;");
        let again = harness.run("cp.async.cg.shared.global [%dst], [%src], 16;");
        assert!(matches!(again, Err(Failure::Trap(0, FaultKind::SharedRace { .. }))), "{again:?}");
    }

    #[test]
    fn an_mbarrier_follows_the_copies_before_it() {
        let mut harness = harness();
        harness.define("%phase", Type::U32, |_| 0);
        harness.declare("%done", Type::Pred);
        harness.lanes = crate::lanes::Lanes::of(0);
        run(&mut harness, "mbarrier.init.shared.b64 [1024], 1;");
        run(&mut harness, "cp.async.ca.shared.global [%dst], [%src+4], 4;");
        run(&mut harness, "cp.async.mbarrier.arrive.noinc.shared.b64 [1024];");
        assert!(is_pending(&mut harness));
        run(&mut harness, "mbarrier.test_wait.parity.shared.b64 %done, [1024], %phase;");
        assert_eq!(harness.value("%done")[0], 0);
        let mut flying = harness.cluster.in_flight.pop_front().expect("the arrival is in flight");
        flying.operation.complete(&mut harness.cluster, &harness.grid, flying.issuer).expect("there is an mbarrier");
        run(&mut harness, "mbarrier.test_wait.parity.shared.b64 %done, [1024], %phase;");
        assert_eq!(harness.value("%done")[0], 1);
        run(&mut harness, "ld.shared.u32 %a, [%dst];");
        assert_eq!(harness.value("%a")[0], 1);
    }
}
