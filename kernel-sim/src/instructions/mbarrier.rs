//! `mbarrier`: barriers in shared memory that count arrivals and transaction bytes (PTX ISA, "Parallel Synchronization and Communication
//! Instructions: mbarrier").

mod object;
#[cfg(test)]
mod tests;

pub(crate) use object::Mbarriers;
use object::{MAX_COUNT, Object, Phase};

use super::async_access::{self, Held, SharedLocation};
use super::{Address, Form, Instruction, Progress, Register, Unsupported, Value};
use crate::counters::Class;
use crate::fault::{FaultKind, Trap};
use crate::machine::{Cluster, Cx};
use crate::memory::Stamp;
use crate::ptx::{Space, Type};

/// The size and the alignment of an mbarrier object.
const BYTES: u32 = 8;

/// Decodes `mbarrier`.
pub(super) fn decode(form: &mut Form<'_>) -> Result<Box<dyn Instruction>, Unsupported> {
    match form.next_modifier() {
        Some("init") => init(form),
        Some("inval") => inval(form),
        Some("arrive") => arrive(form, false),
        Some("arrive_drop") => arrive(form, true),
        Some("expect_tx") => transactions(form, 1),
        Some("complete_tx") => transactions(form, -1),
        Some("test_wait") => wait(form, false),
        Some("try_wait") => wait(form, true),
        Some("pending_count") => pending_count(form),
        other => Err(form.error(format!("the simulator does not know `mbarrier.{}`", other.unwrap_or_default()))),
    }
}

struct Init {
    address: Address,
    count: Value,
}

fn init(form: &mut Form<'_>) -> Result<Box<dyn Instruction>, Unsupported> {
    let space = own_shared(form)?;
    b64(form)?;
    Ok(Box::new(Init { address: form.address(space)?, count: form.source(Type::U32)? }))
}

impl Instruction for Init {
    fn execute(&self, cx: &mut Cx<'_>) -> Result<Progress, Trap> {
        let counts = cx.read(self.count)?;
        each_location(cx, self.address, |cx, lane, location| {
            let initialised = (async_access::moment(cx, lane), cx.line.line);
            let object = Object::new(counts[lane] as u32, initialised).map_err(|reason| fault(location, reason))?;
            // An object may be initialised again only after `inval`: otherwise threads that still wait on it would wait forever.
            if let Some(old) = cx.cluster.ctas[location.rank].mbarriers.get(&location.offset)
                && async_access::peek(cx.cluster, location, BYTES) == old.bits()
            {
                return Err(fault(location, "it is initialised again without `mbarrier.inval`"));
            }
            async_access::store_as_thread(cx, lane, location, BYTES, object.bits(), "mbarrier.init")?;
            cx.cluster.ctas[location.rank].mbarriers.insert(location.offset, object);
            Ok(())
        })?;
        Ok(Progress::Done)
    }

    fn class(&self) -> Class {
        Class::Barrier
    }
}

struct Inval {
    address: Address,
}

fn inval(form: &mut Form<'_>) -> Result<Box<dyn Instruction>, Unsupported> {
    let space = own_shared(form)?;
    b64(form)?;
    Ok(Box::new(Inval { address: form.address(space)? }))
}

impl Instruction for Inval {
    fn execute(&self, cx: &mut Cx<'_>) -> Result<Progress, Trap> {
        each_location(cx, self.address, |cx, lane, location| {
            object(cx.cluster, location)?;
            async_access::store_as_thread(cx, lane, location, BYTES, 0, "mbarrier.inval")?;
            cx.cluster.ctas[location.rank].mbarriers.remove(&location.offset);
            Ok(())
        })?;
        Ok(Progress::Done)
    }

    fn class(&self) -> Class {
        Class::Barrier
    }
}

struct Arrive {
    state: Option<Register>,
    address: Address,
    /// The number of arrivals. With `.expect_tx` the number of bytes, and there is one arrival.
    count: Value,
    is_drop: bool,
    expects_bytes: bool,
    may_complete: bool,
    is_release: bool,
}

fn arrive(form: &mut Form<'_>, is_drop: bool) -> Result<Box<dyn Instruction>, Unsupported> {
    let expects_bytes = form.flag("expect_tx");
    let may_complete = !form.flag("noComplete");
    if expects_bytes && !may_complete {
        return Err(form.error("`.expect_tx` and `.noComplete` exclude each other"));
    }
    let is_release = ordering(form, "release");
    let space = form.space();
    b64(form)?;
    let state = form.destination(Type::B64)?;
    if space == Space::SharedCluster && state.is_some() {
        return Err(form.error("an arrival at `.shared::cluster` gives no state: `_` is wanted"));
    }
    if space == Space::SharedCluster && !may_complete {
        return Err(form.error("`.noComplete` is for `.shared::cta`"));
    }
    check_shared(form, space)?;
    let address = form.address(space)?;
    let needs_count = expects_bytes || !may_complete;
    let count = if needs_count || form.operands_left() > 0 { form.source(Type::U32)? } else { Value::Bits(1) };
    Ok(Box::new(Arrive { state, address, count, is_drop, expects_bytes, may_complete, is_release }))
}

impl Instruction for Arrive {
    fn execute(&self, cx: &mut Cx<'_>) -> Result<Progress, Trap> {
        let counts = cx.read(self.count)?;
        let mut states = [0; 32];
        each_location(cx, self.address, |cx, lane, location| {
            touch(cx, lane, location, "mbarrier.arrive")?;
            let stamp = self.is_release.then(|| async_access::release(cx, lane));
            let object = object(cx.cluster, location)?;
            states[lane] = object.state();
            let (count, bytes) = if self.expects_bytes { (1, counts[lane]) } else { (counts[lane], 0) };
            let count = u32::try_from(count).unwrap_or(u32::MAX);
            if !self.may_complete && object.would_complete(count) {
                return Err(fault(location, "this arrival is the last of its phase, and `.noComplete` says that it is not"));
            }
            expect(object, location, bytes)?;
            object.arrive(count, stamp.as_ref()).map_err(|reason| fault(location, reason))?;
            if self.is_drop {
                object.drop_expected(count).map_err(|reason| fault(location, reason))?;
            }
            update(cx.cluster, location)
        })?;
        cx.write(self.state, &states);
        Ok(Progress::Done)
    }

    fn class(&self) -> Class {
        Class::Barrier
    }
}

struct Transactions {
    address: Address,
    bytes: Value,
    sign: i64,
}

fn transactions(form: &mut Form<'_>, sign: i64) -> Result<Box<dyn Instruction>, Unsupported> {
    form.flag("relaxed");
    scope(form);
    let space = form.space();
    check_shared(form, space)?;
    b64(form)?;
    Ok(Box::new(Transactions { address: form.address(space)?, bytes: form.source(Type::U32)?, sign }))
}

impl Instruction for Transactions {
    fn execute(&self, cx: &mut Cx<'_>) -> Result<Progress, Trap> {
        let bytes = cx.read(self.bytes)?;
        each_location(cx, self.address, |cx, lane, location| {
            touch(cx, lane, location, "mbarrier.expect_tx")?;
            let object = object(cx.cluster, location)?;
            if self.sign > 0 {
                expect(object, location, bytes[lane])?;
            } else {
                object.change_transactions(-(bytes[lane] as i64)).map_err(|reason| fault(location, reason))?;
            }
            update(cx.cluster, location)
        })?;
        Ok(Progress::Done)
    }

    fn class(&self) -> Class {
        Class::Barrier
    }
}

struct Wait {
    complete: Option<Register>,
    address: Address,
    phase: Value,
    is_parity: bool,
    is_acquire: bool,
}

fn wait(form: &mut Form<'_>, may_suspend: bool) -> Result<Box<dyn Instruction>, Unsupported> {
    let is_parity = form.flag("parity");
    let is_acquire = ordering(form, "acquire");
    let space = own_shared(form)?;
    b64(form)?;
    let complete = form.destination(Type::Pred)?;
    let address = form.address(space)?;
    let phase = form.source(if is_parity { Type::U32 } else { Type::B64 })?;
    if may_suspend && form.operands_left() > 0 {
        // The time limit of the suspension, which is ignored: the simulator has no time.
        form.source(Type::U32)?;
    }
    Ok(Box::new(Wait { complete, address, phase, is_parity, is_acquire }))
}

impl Instruction for Wait {
    fn execute(&self, cx: &mut Cx<'_>) -> Result<Progress, Trap> {
        let phases = cx.read(self.phase)?;
        let mut complete = [0; 32];
        each_location(cx, self.address, |cx, lane, location| {
            touch(cx, lane, location, "mbarrier wait")?;
            let object = object(cx.cluster, location)?;
            let is_complete = if !self.is_parity {
                object.is_complete_state(phases[lane]).map_err(|reason| fault(location, reason))?
            } else if phases[lane] <= 1 {
                object.is_complete_parity(phases[lane])
            } else {
                return Err(fault(location, format!("the parity of a phase is 0 or 1, not {}", phases[lane])));
            };
            complete[lane] = u64::from(is_complete);
            if !is_complete {
                object.is_waited_for = true;
            } else if self.is_acquire {
                let stamp = object.completed().clone();
                async_access::acquire(cx, lane, &stamp);
            }
            Ok(())
        })?;
        cx.write(self.complete, &complete);
        let is_done = cx.lanes.into_iter().all(|lane| complete[lane] == 1);
        Ok(if is_done { Progress::Done } else { Progress::Yield })
    }

    fn class(&self) -> Class {
        Class::Barrier
    }
}

struct PendingCount {
    count: Option<Register>,
    state: Value,
}

fn pending_count(form: &mut Form<'_>) -> Result<Box<dyn Instruction>, Unsupported> {
    b64(form)?;
    Ok(Box::new(PendingCount { count: form.destination(Type::U32)?, state: form.source(Type::B64)? }))
}

impl Instruction for PendingCount {
    fn execute(&self, cx: &mut Cx<'_>) -> Result<Progress, Trap> {
        let states = cx.read(self.state)?;
        let mut counts = [0; 32];
        for lane in cx.lanes {
            counts[lane] = object::pending_count(states[lane]).map_err(|reason| cx.illegal(lane, reason))?;
        }
        cx.write(self.count, &counts);
        Ok(Progress::Done)
    }

    fn class(&self) -> Class {
        Class::Barrier
    }
}

/// A description of each mbarrier of a CTA that threads wait for.
pub(crate) fn waiting(mbarriers: &Mbarriers) -> Vec<String> {
    let mut waited: Vec<_> = mbarriers.iter().filter(|(_, object)| object.is_waited_for).collect();
    waited.sort_by_key(|(offset, _)| **offset);
    waited.into_iter().map(|(offset, object)| format!("mbarrier at shared address {offset:#x}: {}", object.describe())).collect()
}

/// An arrival by an asynchronous operation: `cp.async.mbarrier.arrive`. Without `.noinc`, the caller first calls [`add_pending`].
pub(super) fn arrive_later(cluster: &mut Cluster, location: SharedLocation, stamp: &Stamp) -> Result<(), FaultKind> {
    object(cluster, location)?.arrive(1, Some(stamp)).map_err(|reason| fault(location, reason))?;
    update(cluster, location)
}

/// Increments the pending count of the phase.
pub(super) fn add_pending(cluster: &mut Cluster, location: SharedLocation) -> Result<(), FaultKind> {
    object(cluster, location)?.add_pending().map_err(|reason| fault(location, reason))?;
    update(cluster, location)
}

/// Completes the transaction of an asynchronous operation that has written these shared bytes of the mbarrier's CTA. Threads that wait for
/// the phase acquire `stamp`.
pub(super) fn complete_bytes(
    cluster: &mut Cluster,
    location: SharedLocation,
    bytes: u32,
    landed: &[Held],
    stamp: &Stamp,
) -> Result<(), FaultKind> {
    let object = object(cluster, location)?;
    object.change_transactions(-i64::from(bytes)).map_err(|reason| fault(location, reason))?;
    object.land(landed, stamp);
    update(cluster, location)
}

/// Checks that there is an mbarrier for an operation that is about to be issued.
pub(super) fn check_issue(cx: &mut Cx<'_>, lane: usize, location: SharedLocation) -> Result<(), FaultKind> {
    if !location.offset.is_multiple_of(BYTES) {
        return Err(FaultKind::Misaligned { space: Space::Shared, address: u64::from(location.offset), alignment: BYTES });
    }
    touch(cx, lane, location, "mbarrier.complete_tx")
}

/// Checks that a thread's use of an object is ordered after the object's initialisation.
fn touch(cx: &mut Cx<'_>, lane: usize, location: SharedLocation, name: &'static str) -> Result<(), FaultKind> {
    let (moment, line) = object(cx.cluster, location)?.initialised;
    async_access::check_after(cx, lane, location, name, (moment, "mbarrier.init", line))
}

fn expect(object: &mut Object, location: SharedLocation, bytes: u64) -> Result<(), FaultKind> {
    if bytes > u64::from(MAX_COUNT) {
        return Err(fault(location, format!("{bytes} bytes are expected, and {MAX_COUNT} at most can be")));
    }
    object.change_transactions(bytes as i64).map_err(|reason| fault(location, reason))
}

/// The object at this address, if it was initialised and not overwritten.
fn object(cluster: &mut Cluster, location: SharedLocation) -> Result<&mut Object, FaultKind> {
    let bits = async_access::peek(cluster, location, BYTES);
    match cluster.ctas[location.rank].mbarriers.get_mut(&location.offset) {
        None => Err(fault(location, "it is not initialised")),
        Some(object) if object.bits() != bits => {
            Err(fault(location, format!("something was stored over it: its {} became {bits:#x}", object.describe())))
        }
        Some(object) => Ok(object),
    }
}

/// Starts the next phase if this one is complete, and writes the object's bits to memory. To be called after each change.
fn update(cluster: &mut Cluster, location: SharedLocation) -> Result<(), FaultKind> {
    let Some(object) = cluster.ctas[location.rank].mbarriers.get_mut(&location.offset) else { return Ok(()) };
    let phase = object.advance();
    let bits = object.bits();
    async_access::poke(cluster, location, BYTES, bits)?;
    if let Phase::Completes(landed) = phase {
        for Held { range, owner } in landed {
            cluster.ctas[location.rank].shared.clear_pending(range, owner);
        }
        cluster.happened();
    }
    Ok(())
}

fn fault(location: SharedLocation, reason: impl Into<String>) -> FaultKind {
    FaultKind::Mbarrier { address: u64::from(location.offset), reason: reason.into() }
}

/// Visits the mbarrier of each lane.
fn each_location(
    cx: &mut Cx<'_>,
    address: Address,
    mut visit: impl FnMut(&mut Cx<'_>, usize, SharedLocation) -> Result<(), FaultKind>,
) -> Result<(), Trap> {
    let addresses = cx.addresses(address)?;
    for lane in cx.lanes {
        let location = async_access::shared_location(cx, lane, address.space, addresses[lane], BYTES, BYTES)?;
        visit(cx, lane, location).map_err(|kind| Trap::new(lane, kind))?;
    }
    Ok(())
}

/// Takes `.b64`.
fn b64(form: &mut Form<'_>) -> Result<(), Unsupported> {
    if form.flag("b64") { Ok(()) } else { Err(form.error("`.b64` is missing")) }
}

/// Takes the memory semantics; `usual` is the default.
fn ordering(form: &mut Form<'_>, usual: &str) -> bool {
    let is_relaxed = form.flag("relaxed");
    if !is_relaxed {
        form.flag(usual);
    }
    scope(form);
    !is_relaxed
}

fn scope(form: &mut Form<'_>) {
    // The simulator treats every scope as the widest one.
    form.one_of(&[("cta", ()), ("cluster", ())]);
}

/// Takes a state space, which must be the shared memory of the thread's own CTA.
fn own_shared(form: &mut Form<'_>) -> Result<Space, Unsupported> {
    match form.space() {
        space @ (Space::Shared | Space::Generic) => Ok(space),
        _ => Err(form.error("an mbarrier of the own CTA is wanted: `.shared::cta`")),
    }
}

fn check_shared(form: &Form<'_>, space: Space) -> Result<(), Unsupported> {
    let is_shared = matches!(space, Space::Shared | Space::SharedCluster | Space::Generic);
    if is_shared { Ok(()) } else { Err(form.error("an mbarrier lies in shared memory")) }
}
