//! `cp.async.bulk` and `cp.reduce.async.bulk`: copies of contiguous ranges by the async proxy (PTX ISA, "Data Movement and Conversion
//! Instructions: Bulk copy").

mod groups;
#[cfg(test)]
mod tests;
mod transfer;

pub(crate) use groups::BulkGroups;
use groups::End;
pub(super) use transfer::{Combine, Load, Piece, Source, Store, put};

use super::async_access::{self, Held, SharedLocation};
use super::atomic::{self, Reduction};
use super::{Address, Form, Instruction, Progress, Unsupported, Value, async_copy, bulk_tensor, mbarrier};
use crate::counters::Class;
use crate::fault::{FaultKind, Trap};
use crate::lanes::Row;
use crate::machine::{Cx, InFlight};
use crate::memory::{Proxy, Queue};
use crate::ptx::{Space, Type};

/// The alignment of every address and size of a bulk copy.
const UNIT: u32 = 16;

/// Decodes `cp`: bulk copies here, and `cp.async` without `.bulk` in `async_copy`.
pub(super) fn decode_copy(form: &mut Form<'_>) -> Result<Box<dyn Instruction>, Unsupported> {
    if form.has(&["bulk"]) { decode(form) } else { async_copy::decode(form) }
}

/// Decodes `cp.async.bulk` and `cp.reduce.async.bulk`.
fn decode(form: &mut Form<'_>) -> Result<Box<dyn Instruction>, Unsupported> {
    let is_reduction = form.flag("reduce");
    if !form.flag("async") || !form.flag("bulk") {
        return Err(form.error("`cp.async.bulk` is wanted"));
    }
    if form.flag("tensor") {
        return bulk_tensor::decode(form, is_reduction);
    }
    if !is_reduction {
        if form.flag("commit_group") {
            return Ok(groups::commit());
        }
        if form.flag("wait_group") {
            return groups::wait(form);
        }
        if form.flag("prefetch") {
            return prefetch(form);
        }
    }
    let target = form.next_modifier();
    let source = form.next_modifier();
    match (target, source) {
        (Some("global"), Some("shared::cta")) => store(form, is_reduction),
        (Some("shared::cluster"), Some("shared::cta")) => load(form, Space::SharedCluster, Space::Shared, is_reduction),
        (Some("shared::cluster"), Some("global")) if !is_reduction => load(form, Space::SharedCluster, Space::Global, false),
        (Some("shared::cta"), Some("global")) if !is_reduction => load(form, Space::Shared, Space::Global, false),
        _ => Err(form.error(format!("a bulk copy can not go to `.{}` from `.{}`", target.unwrap_or_default(), source.unwrap_or_default()))),
    }
}

struct BulkLoad {
    target: Address,
    source: Address,
    size: Value,
    mbarrier: Address,
    multicast: Option<Value>,
    policy: Option<Value>,
    combine: Option<Combine>,
}

fn load(form: &mut Form<'_>, target: Space, source: Space, is_reduction: bool) -> Result<Box<dyn Instruction>, Unsupported> {
    completion(form, "mbarrier::complete_tx::bytes")?;
    let combine = if is_reduction { Some(combine(form, Type::is_shared_reducible)?) } else { None };
    let is_multicast = source == Space::Global && target == Space::SharedCluster && form.flag("multicast::cluster");
    let has_policy = source == Space::Global && form.flag("L2::cache_hint");
    Ok(Box::new(BulkLoad {
        target: form.address(target)?,
        source: form.address(source)?,
        size: form.source(Type::U32)?,
        mbarrier: form.address(target)?,
        multicast: if is_multicast { Some(form.source(Type::U16)?) } else { None },
        policy: if has_policy { Some(form.source(Type::B64)?) } else { None },
        combine,
    }))
}

impl Instruction for BulkLoad {
    fn execute(&self, cx: &mut Cx<'_>) -> Result<Progress, Trap> {
        let targets = cx.addresses(self.target)?;
        let sources = cx.addresses(self.source)?;
        let sizes = cx.read(self.size)?;
        let mbarriers = Mbarriers { space: self.mbarrier.space, addresses: cx.addresses(self.mbarrier)? };
        let masks = self.multicast.map(|mask| cx.read(mask)).transpose()?;
        async_access::read_unused(cx, self.policy)?;
        for lane in cx.lanes {
            let bytes = size(cx, lane, sizes[lane])?;
            let target = async_access::shared_location(cx, lane, self.target.space, targets[lane], bytes, UNIT)?;
            let (source, from) = if self.source.space == Space::Global {
                (Source::Global, global(lane, sources[lane])?)
            } else {
                let location = async_access::shared_location(cx, lane, self.source.space, sources[lane], bytes, UNIT)?;
                (Source::Shared(location.rank), u64::from(location.offset))
            };
            let pieces = transfer::pieces(target.offset, from, bytes);
            let parts = Parts { target, span: bytes, transaction_bytes: bytes, pieces, fill: Vec::new(), rounds: false };
            issue_load(cx, lane, parts, source, self.combine, &mbarriers, masks.as_ref().map(|masks| masks[lane]))?;
        }
        Ok(Progress::Done)
    }

    fn class(&self) -> Class {
        Class::Memory
    }
}

/// The mbarrier operand of a copy.
pub(super) struct Mbarriers {
    pub(super) space: Space,
    pub(super) addresses: Row,
}

/// The writes of a copy into shared memory.
pub(super) struct Parts {
    /// The address of the first byte.
    pub(super) target: SharedLocation,
    /// The number of bytes from there that threads must not access before the copy completes.
    pub(super) span: u32,
    pub(super) transaction_bytes: u32,
    pub(super) pieces: Vec<Piece>,
    pub(super) fill: Vec<u8>,
    pub(super) rounds: bool,
}

/// Issues a copy into shared memory. A multicast writes the same offsets in each CTA of the mask.
pub(super) fn issue_load(
    cx: &mut Cx<'_>,
    lane: usize,
    parts: Parts,
    source: Source,
    combine: Option<Combine>,
    mbarriers: &Mbarriers,
    multicast: Option<u64>,
) -> Result<(), Trap> {
    let mbarrier = async_access::shared_location(cx, lane, mbarriers.space, mbarriers.addresses[lane], 8, 8)?;
    if mbarrier.rank != parts.target.rank {
        return Err(cx.illegal(
            lane,
            format!("the copy goes to CTA {} of the cluster, and its mbarrier is in CTA {}", parts.target.rank, mbarrier.rank),
        ));
    }
    let ctas = cx.cluster.ctas.len();
    let targets: Vec<usize> = match multicast {
        None => vec![parts.target.rank],
        Some(mask) if mask == 0 || mask >> ctas != 0 => {
            return Err(cx.illegal(lane, format!("the CTA mask {mask:#x} of a multicast in a cluster of {ctas} CTAs")));
        }
        Some(mask) => (0..ctas).filter(|rank| mask >> rank & 1 == 1).collect(),
    };
    for &rank in &targets {
        mbarrier::check_issue(cx, lane, SharedLocation { rank, ..mbarrier }).map_err(|kind| Trap::new(lane, kind))?;
    }
    let operation = async_access::issue(cx, lane, Proxy::Async, Queue::Mbarrier);
    let line = cx.line.line;
    let owner = cx.issuer(lane);
    let start = u64::from(parts.target.offset);
    let held = Held { range: start..start + u64::from(parts.span), owner };
    for &rank in &targets {
        cx.cluster.ctas[rank].shared.mark_pending(held.range.clone(), "an asynchronous bulk copy", line, owner);
    }
    let held_source = match (source, parts.pieces.first().and_then(|piece| piece.other)) {
        (Source::Shared(rank), Some(start)) => {
            let held = Held { range: start..start + u64::from(parts.span), owner };
            cx.cluster.ctas[rank].shared.mark_pending_read(held.range.clone(), "an asynchronous bulk copy", line, owner);
            Some(held)
        }
        _ => None,
    };
    count_bytes(cx, &parts.pieces, targets.len());
    let Parts { transaction_bytes, pieces, fill, rounds, .. } = parts;
    let mbarrier = mbarrier.offset;
    let load = Load { source, targets, mbarrier, transaction_bytes, pieces, fill, rounds, combine, held, held_source, operation, line };
    cx.cluster.in_flight.push_back(InFlight { issuer: owner, operation: Box::new(load) });
    Ok(())
}

struct BulkStore {
    target: Address,
    source: Address,
    size: Value,
    policy: Option<Value>,
    combine: Option<Combine>,
}

fn store(form: &mut Form<'_>, is_reduction: bool) -> Result<Box<dyn Instruction>, Unsupported> {
    completion(form, "bulk_group")?;
    let combine = if is_reduction { Some(combine(form, Type::is_global_reducible)?) } else { None };
    let has_policy = form.flag("L2::cache_hint");
    Ok(Box::new(BulkStore {
        target: form.address(Space::Global)?,
        source: form.address(Space::Shared)?,
        size: form.source(Type::U32)?,
        policy: if has_policy { Some(form.source(Type::B64)?) } else { None },
        combine,
    }))
}

impl Instruction for BulkStore {
    fn execute(&self, cx: &mut Cx<'_>) -> Result<Progress, Trap> {
        let targets = cx.addresses(self.target)?;
        let sources = cx.addresses(self.source)?;
        let sizes = cx.read(self.size)?;
        async_access::read_unused(cx, self.policy)?;
        for lane in cx.lanes {
            let bytes = size(cx, lane, sizes[lane])?;
            let source = async_access::shared_location(cx, lane, self.source.space, sources[lane], bytes, UNIT)?;
            let pieces = transfer::pieces(source.offset, global(lane, targets[lane])?, bytes);
            issue_store(cx, lane, source, bytes, pieces, self.combine);
        }
        Ok(Progress::Done)
    }

    fn crosses_ctas(&self) -> bool {
        self.combine.is_some()
    }

    fn class(&self) -> Class {
        Class::Memory
    }
}

/// Issues a copy from shared to global memory. It reads only inside the `span` bytes at the source.
pub(super) fn issue_store(cx: &mut Cx<'_>, lane: usize, source: SharedLocation, span: u32, pieces: Vec<Piece>, combine: Option<Combine>) {
    let operation = async_access::issue(cx, lane, Proxy::Async, Queue::Bulk);
    let writing = async_access::issue(cx, lane, Proxy::Async, Queue::BulkWrite);
    let group = groups::join(cx, lane, End { read: operation.done(), written: writing.done() });
    let line = cx.line.line;
    let owner = cx.issuer(lane);
    let start = u64::from(source.offset);
    let held = Held { range: start..start + u64::from(span), owner };
    cx.cluster.ctas[source.rank].shared.mark_pending_read(held.range.clone(), "an asynchronous bulk copy", line, owner);
    count_bytes(cx, &pieces, 1);
    let store = Store { rank: source.rank, pieces, combine, held, buffer: None, group, operation, writing, line };
    cx.cluster.in_flight.push_back(InFlight { issuer: owner, operation: Box::new(store) });
}

/// Counts the bytes that a copy moves to this number of CTAs.
fn count_bytes(cx: &mut Cx<'_>, pieces: &[Piece], targets: usize) {
    let bytes: u32 = pieces.iter().filter(|piece| piece.other.is_some()).map(|piece| piece.bytes).sum();
    let line = cx.line;
    cx.cluster.counters.asynchronous(line, u64::from(bytes) * targets as u64);
}

struct Prefetch {
    source: Address,
    size: Value,
    policy: Option<Value>,
}

fn prefetch(form: &mut Form<'_>) -> Result<Box<dyn Instruction>, Unsupported> {
    if !form.flag("L2") || !form.flag("global") {
        return Err(form.error("`.L2.global` is missing"));
    }
    let has_policy = form.flag("L2::cache_hint");
    Ok(Box::new(Prefetch {
        source: form.address(Space::Global)?,
        size: form.source(Type::U32)?,
        policy: if has_policy { Some(form.source(Type::B64)?) } else { None },
    }))
}

impl Instruction for Prefetch {
    fn execute(&self, cx: &mut Cx<'_>) -> Result<Progress, Trap> {
        let sources = cx.addresses(self.source)?;
        let sizes = cx.read(self.size)?;
        async_access::read_unused(cx, self.policy)?;
        for lane in cx.lanes {
            let bytes = size(cx, lane, sizes[lane])?;
            let address = global(lane, sources[lane])?;
            cx.grid.global.find(address, bytes).map_err(|kind| Trap::new(lane, kind))?;
        }
        Ok(Progress::Done)
    }

    fn class(&self) -> Class {
        Class::Memory
    }
}

/// Checks the size of a bulk copy, which must be a multiple of 16.
fn size(cx: &Cx<'_>, lane: usize, size: u64) -> Result<u32, Trap> {
    let bytes = size as u32;
    if bytes == 0 || !bytes.is_multiple_of(UNIT) {
        return Err(cx.illegal(lane, format!("the size of a bulk copy is a multiple of {UNIT}, not {bytes}")));
    }
    Ok(bytes)
}

/// Checks a global address of a bulk copy, which must be a multiple of 16.
fn global(lane: usize, address: u64) -> Result<u64, Trap> {
    if address.is_multiple_of(u64::from(UNIT)) {
        Ok(address)
    } else {
        Err(Trap::new(lane, FaultKind::Misaligned { space: Space::Global, address, alignment: UNIT }))
    }
}

/// Takes the completion mechanism of a copy.
pub(super) fn completion(form: &mut Form<'_>, name: &str) -> Result<(), Unsupported> {
    if form.flag(name) { Ok(()) } else { Err(form.error(format!("`.{name}` is missing"))) }
}

/// Takes the operation of a reduction by `cp.reduce.async.bulk.tensor`.
pub(super) fn reduction(form: &mut Form<'_>) -> Result<Reduction, Unsupported> {
    let choices = atomic::REDUCTIONS;
    let found = form.one_of(&choices).filter(|reduction| !matches!(reduction, Reduction::Exchange | Reduction::CompareAndSwap));
    found.ok_or_else(|| form.error("a reduction needs its operation, such as `.add`"))
}

/// Takes the operation and the type of a reduction by `cp.reduce.async.bulk`.
fn combine(form: &mut Form<'_>, has: fn(Type, Reduction) -> bool) -> Result<Combine, Unsupported> {
    let reduction = reduction(form)?;
    let keeps_subnormals = form.flag("noftz");
    let ty = form.ty()?;
    if !has(ty, reduction) {
        return Err(form.error(format!("this reduction has no type `{ty}`")));
    }
    if keeps_subnormals != (reduction == Reduction::Add && matches!(ty, Type::F16 | Type::Bf16)) {
        return Err(form.error("`.noftz` belongs to `.add` of `.f16` and `.bf16`, which has to have it"));
    }
    Ok(Combine { reduction, ty })
}

impl Type {
    /// Whether elements in shared memory support this reduction.
    pub(super) fn is_shared_reducible(self, reduction: Reduction) -> bool {
        match reduction {
            Reduction::And | Reduction::Or | Reduction::Xor => self == Type::B32,
            Reduction::Add => matches!(self, Type::U32 | Type::S32 | Type::U64),
            Reduction::Increment | Reduction::Decrement => self == Type::U32,
            Reduction::Min | Reduction::Max => matches!(self, Type::U32 | Type::S32),
            Reduction::Exchange | Reduction::CompareAndSwap => false,
        }
    }

    /// Whether elements in global memory support this reduction.
    pub(super) fn is_global_reducible(self, reduction: Reduction) -> bool {
        use Type::*;
        match reduction {
            Reduction::And | Reduction::Or | Reduction::Xor => matches!(self, B32 | B64),
            Reduction::Add => matches!(self, U32 | S32 | U64 | F32 | F64 | F16 | Bf16),
            Reduction::Increment | Reduction::Decrement => self == U32,
            Reduction::Min | Reduction::Max => matches!(self, U32 | S32 | U64 | S64 | F16 | Bf16),
            Reduction::Exchange | Reduction::CompareAndSwap => false,
        }
    }
}
