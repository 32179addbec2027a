//! `cp.async` and its groups: copies from global to shared memory that a thread issues and later waits for (PTX ISA, 9.7.9.25.3).
//!
//! The bytes are read, and the accesses checked, when the copy is issued; it is the *knowledge* of them that arrives late. Until its wait
//! no thread may touch the destination ([`FaultKind::PendingAsync`]), and after the wait it is the waiting thread that knows of the
//! copy: others must be ordered after that wait.
//!
//! [`FaultKind::PendingAsync`]: crate::fault::FaultKind::PendingAsync

use std::collections::VecDeque;
use std::ops::Range;

use crate::counters::Class;
use crate::fault::{FaultKind, Trap};
use crate::instructions::hints::{self, Allowed};
use crate::instructions::{Address, Form, Instruction, Progress, Unsupported, Value};
use crate::lanes::{Lanes, Row, WARP, WideRow};
use crate::machine::{Access, Cluster, Cx, Issuer, Place};
use crate::memory::{Agent, Operation, Proxy, Queue, Touch};
use crate::ptx::{Operand, Space, Type};

/// Copies of a warp's threads that were not waited for.
#[derive(Default)]
pub(crate) struct Copies {
    lanes: [LaneCopies; WARP],
}

#[derive(Default)]
struct LaneCopies {
    /// Issued since the last `commit_group`.
    open: Vec<Flying>,
    /// Committed, the oldest first. A group may be empty.
    groups: VecDeque<Vec<Flying>>,
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

/// How much of a copy is read; the rest is zeros.
enum Size {
    Whole,
    /// That many bytes.
    Bytes(Value),
    /// Nothing, where the predicate holds.
    Ignore(Value),
}

/// `cp.async.commit_group`
struct Commit;

/// `cp.async.wait_group` and `wait_all`
struct Wait {
    /// Committed groups that may stay in flight.
    allowed: usize,
    /// Do copies that were not committed count too?
    is_all: bool,
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
    decode_copy(form)
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

/// A predicate says whether the source is ignored; anything else is a number of bytes.
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
        let values = load(cx, &sources, &sizes)?;
        let line = cx.line;
        cx.cluster.counters.at(line).shared.record_store(cx.lanes, &targets, self.bytes);
        for lane in cx.lanes {
            store(cx, lane, targets[lane], self.bytes, values[lane]).map_err(|kind| Trap::new(lane, kind))?;
        }
        Ok(Progress::Done)
    }

    fn class(&self) -> Class {
        Class::Memory
    }
}

impl Copy {
    /// How many bytes each lane reads.
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
    match lanes.into_iter().find(|&lane| addresses[lane] % u64::from(alignment) != 0) {
        Some(lane) => Err(Trap::new(lane, FaultKind::Misaligned { space, address: addresses[lane], alignment })),
        None => Ok(()),
    }
}

/// Reads what each lane copies, zeros behind it. Lanes that read equally much make one access; a size that is no power of two is read in
/// parts, each aligned because the larger ones come first.
fn load(cx: &mut Cx<'_>, sources: &Row, sizes: &[u32; WARP]) -> Result<WideRow, Trap> {
    let lanes = cx.lanes;
    let mut values = [0; WARP];
    let mut rest = lanes;
    let result = loop {
        let Some(first) = rest.lowest() else { break Ok(values) };
        let same = rest.filter(|lane| sizes[lane] == sizes[first]);
        rest = rest.without(same);
        cx.lanes = same;
        if let Err(trap) = load_parts(cx, sources, sizes[first], &mut values) {
            break Err(trap);
        }
    };
    cx.lanes = lanes;
    result
}

fn load_parts(cx: &mut Cx<'_>, sources: &Row, size: u32, values: &mut WideRow) -> Result<(), Trap> {
    let mut place = 0;
    while place < size {
        let bytes = 1 << (size - place).ilog2();
        let addresses = sources.map(|address| address.wrapping_add(u64::from(place)));
        let loaded = cx.load(Access::plain("asynchronous copy", Space::Global, bytes), &addresses)?;
        cx.lanes.into_iter().for_each(|lane| values[lane] |= loaded[lane] << (8 * place));
        place += bytes;
    }
    Ok(())
}

/// Writes what a lane copies, and keeps others away from it until the copy is waited for.
fn store(cx: &mut Cx<'_>, lane: usize, address: u64, bytes: u32, value: u128) -> Result<(), FaultKind> {
    let Place::Shared { rank, offset } = cx.resolve(Space::Shared, address)? else {
        return Err(FaultKind::Illegal { reason: format!("{address:#x} is no address in shared memory") });
    };
    let owner = cx.issuer(lane);
    let line = cx.line.line;
    let Cluster { ctas, clocks, .. } = &mut *cx.cluster;
    let operation = clocks.issue(clocks.warp(cx.rank, cx.warp.index), lane, Proxy::Generic, Queue::Copy);
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
            if let Some(last) = arrive(cx.cluster, &done) {
                // Copies of a thread are done in order, so who knows of the last one knows of all.
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

/// Copies are done: their destinations may be touched. Gives the last of them.
fn arrive<'a>(cluster: &mut Cluster, copies: &'a [Flying]) -> Option<&'a Flying> {
    for copy in copies {
        cluster.ctas[copy.rank].shared.clear_pending(copy.range.clone(), copy.owner);
    }
    copies.last()
}
