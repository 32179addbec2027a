//! Tests of the race check: worked cases, and random programs compared with a model that has a full clock for each thread.

use proptest::prelude::*;

use crate::fault::FaultKind;
use crate::lanes::{Lanes, WARP};
use crate::machine::Issuer;
use crate::memory::{Agent, Clocks, Operation, Proxy, Queue, Scope, SharedMemory, Stamp, Touch, View};

/// The shared memory of one CTA, and the clocks of its cluster.
struct World {
    clocks: Clocks,
    shared: SharedMemory,
}

const STORE: Touch = Touch { name: "store", line: 1, scope: None, is_atomic: false };
const LOAD: Touch = Touch { name: "load", line: 2, scope: None, is_atomic: false };
const COPY: Touch = Touch { name: "copy", line: 3, scope: None, is_atomic: false };

fn thread(warp: usize, lane: usize) -> Agent<'static> {
    Agent::Thread { warp, lane }
}

impl World {
    fn new(threads: u32) -> World {
        World { clocks: Clocks::new(2, [threads, 1, 1]), shared: SharedMemory::new(256, true) }
    }

    fn store(&mut self, agent: Agent<'_>, offset: u64) -> Result<(), FaultKind> {
        self.shared.store(agent, &self.clocks, offset, 4, 7, STORE)
    }

    fn load(&mut self, agent: Agent<'_>, offset: u64) -> Result<(), FaultKind> {
        self.shared.load(agent, &self.clocks, offset, 4, LOAD).map(|_| ())
    }

    fn copy_into(&mut self, operation: &Operation, offset: u64) -> Result<(), FaultKind> {
        self.shared.store(Agent::Async(operation), &self.clocks, offset, 16, 0, COPY)
    }

    fn copy_out(&mut self, operation: &Operation, offset: u64) -> Result<(), FaultKind> {
        self.shared.load(Agent::Async(operation), &self.clocks, offset, 16, COPY).map(|_| ())
    }

    fn barrier(&mut self, warps: &[usize]) {
        let participants: Vec<_> = warps.iter().map(|&warp| (warp, Lanes::ALL)).collect();
        self.clocks.barrier(&participants);
    }
}

/// The hint and the other thread of a race.
fn race(result: Result<(), FaultKind>) -> Option<(&'static str, [u32; 3])> {
    match result {
        Ok(()) => None,
        Err(FaultKind::SharedRace { hint, other_thread, .. }) => Some((hint, other_thread)),
        Err(other) => panic!("another fault: {other}"),
    }
}

#[test]
fn a_barrier_orders_and_a_missing_one_races() {
    let mut world = World::new(128);
    world.store(thread(0, 3), 8).unwrap();
    let fault = world.load(thread(1, 0), 8).unwrap_err();
    assert_eq!(
        fault.to_string(),
        "shared memory race at address 0x8: this load and a store by thread [3, 0, 0] (line 1) are not ordered: a barrier is missing"
    );
    world.barrier(&[0, 1]);
    world.load(thread(1, 0), 8).unwrap();
    assert_eq!(race(world.load(thread(2, 0), 8)), Some((": a barrier is missing", [3, 0, 0])), "warp 2 was not at that barrier");
    world.store(thread(0, 4), 8).unwrap_err();
    world.barrier(&[0, 1, 2, 3]);
    world.store(thread(3, 4), 8).unwrap();
}

#[test]
fn a_write_after_a_read_needs_a_barrier_too() {
    let mut world = World::new(64);
    world.store(thread(0, 0), 0).unwrap();
    world.barrier(&[0, 1]);
    world.load(thread(1, 0), 0).unwrap();
    world.load(thread(0, 0), 0).unwrap();
    assert_eq!(race(world.store(thread(0, 0), 0)), Some((": a barrier is missing", [32, 0, 0])));
    world.barrier(&[0, 1]);
    world.store(thread(0, 0), 0).unwrap();
}

#[test]
fn lanes_of_a_warp_are_not_ordered_by_themselves() {
    let mut world = World::new(32);
    world.store(thread(0, 0), 0).unwrap();
    world.load(thread(0, 0), 0).unwrap();
    assert_eq!(race(world.load(thread(0, 1), 0)), Some((": `bar.warp.sync` or a barrier is missing", [0, 0, 0])));
    world.clocks.barrier(&[(0, Lanes::first(2))]);
    world.load(thread(0, 1), 0).unwrap();
    assert!(race(world.load(thread(0, 2), 0)).is_some(), "lane 2 did not take part");
}

#[test]
fn one_instruction_may_write_one_value_from_many_lanes() {
    let mut world = World::new(32);
    for lane in 0..WARP {
        world.shared.store(thread(0, lane), &world.clocks, 0, 4, 5, STORE).unwrap();
    }
    let other = world.shared.store(thread(0, 2), &world.clocks, 0, 4, 6, STORE);
    assert_eq!(race(other), Some((": lanes of one instruction write different values", [0, 0, 0])));
    // The next access must be ordered after each of the stores.
    world.clocks.barrier(&[(0, Lanes::first(31))]);
    assert_eq!(race(world.load(thread(0, 0), 0)), Some((": `bar.warp.sync` or a barrier is missing", [31, 0, 0])));
}

#[test]
fn a_release_orders_through_a_chain() {
    let mut world = World::new(96);
    world.store(thread(0, 5), 0).unwrap();
    let first = world.clocks.release(0, 5);
    world.store(thread(0, 5), 64).unwrap();
    world.clocks.acquire(1, 7, &first);
    let mut second = Stamp::default();
    second.join(&world.clocks.release(1, 7));
    world.clocks.acquire(2, 9, &second);
    world.load(thread(2, 9), 0).unwrap();
    assert!(race(world.load(thread(2, 8), 0)).is_some(), "lane 8 acquired nothing");
    assert!(race(world.load(thread(2, 9), 64)).is_some(), "that was written after the release");
}

#[test]
fn a_release_of_one_lane_says_nothing_of_the_others() {
    let mut world = World::new(64);
    world.store(thread(0, 1), 0).unwrap();
    let stamp = world.clocks.release(0, 0);
    world.clocks.acquire(1, 0, &stamp);
    assert_eq!(race(world.load(thread(1, 0), 0)), Some((": a barrier is missing", [1, 0, 0])));
    world.barrier(&[0]);
    let stamp = world.clocks.release(0, 0);
    world.clocks.acquire(1, 0, &stamp);
    world.load(thread(1, 0), 0).unwrap();
}

#[test]
fn the_async_proxy_sees_fenced_stores() {
    let hint = Some((": `fence.proxy.async` is missing", [0, 0, 0]));
    // No fence.
    let mut world = World::new(64);
    world.store(thread(0, 0), 0).unwrap();
    world.barrier(&[0, 1]);
    let operation = world.clocks.issue(1, 0, Proxy::Async, Queue::Bulk);
    assert_eq!(race(world.copy_out(&operation, 0)), hint);
    // `cp.async` uses the generic proxy.
    let operation = world.clocks.issue(1, 0, Proxy::Generic, Queue::Copy);
    world.copy_out(&operation, 0).unwrap();
    // The issuer executes the fence after the barrier.
    world.clocks.fence_proxy_async(1, Lanes::of(0), &[View::AsyncShared]);
    let operation = world.clocks.issue(1, 0, Proxy::Async, Queue::Bulk);
    world.copy_out(&operation, 0).unwrap();
    // The writing threads execute the fence before the barrier.
    let mut world = World::new(64);
    world.store(thread(0, 0), 0).unwrap();
    world.clocks.fence_proxy_async(0, Lanes::ALL, &[View::AsyncShared]);
    world.store(thread(0, 0), 64).unwrap();
    world.barrier(&[0, 1]);
    let operation = world.clocks.issue(1, 0, Proxy::Async, Queue::Matrix);
    world.copy_out(&operation, 0).unwrap();
    assert_eq!(race(world.copy_out(&operation, 64)), hint, "that was written after the fence");
    // A fence without a barrier orders nothing.
    let mut world = World::new(64);
    world.store(thread(0, 0), 0).unwrap();
    world.clocks.fence_proxy_async(0, Lanes::of(0), &[View::AsyncShared]);
    let operation = world.clocks.issue(1, 0, Proxy::Async, Queue::Bulk);
    assert_eq!(race(world.copy_out(&operation, 0)), Some((": a barrier is missing", [0, 0, 0])));
}

#[test]
fn writes_of_an_operation_are_visible_after_its_wait() {
    let not_waited = Some((": nothing waits for that asynchronous operation", [0, 0, 0]));
    for queue in [Queue::Mbarrier, Queue::Copy] {
        let mut world = World::new(64);
        let operation = world.clocks.issue(0, 0, Proxy::Async, queue);
        world.copy_into(&operation, 0).unwrap();
        assert_eq!(race(world.load(thread(0, 0), 0)), not_waited);
        world.clocks.acquire(0, 0, &operation.done());
        world.load(thread(0, 0), 0).unwrap();
        assert_eq!(race(world.load(thread(1, 0), 0)), not_waited);
        world.barrier(&[0, 1]);
        world.load(thread(1, 0), 0).unwrap();
        // The next operation on these bytes must be ordered after that load.
        let early = world.clocks.issue(0, 0, Proxy::Async, queue);
        assert_eq!(race(world.copy_into(&early, 0)), Some((": a barrier is missing", [32, 0, 0])));
        world.barrier(&[0, 1]);
        let late = world.clocks.issue(0, 0, Proxy::Async, queue);
        world.copy_into(&late, 0).unwrap();
    }
}

#[test]
fn operations_of_a_queue_end_in_order_and_those_of_an_mbarrier_do_not() {
    for (queue, is_ordered) in [(Queue::Copy, true), (Queue::Bulk, true), (Queue::Matrix, true), (Queue::Mbarrier, false)] {
        let mut world = World::new(64);
        let first = world.clocks.issue(1, 4, Proxy::Async, queue);
        let second = world.clocks.issue(1, 4, Proxy::Async, queue);
        world.copy_into(&first, 0).unwrap();
        world.copy_into(&second, 16).unwrap();
        assert!(race(world.copy_into(&second, 0)).is_some(), "the second one did not wait for the first");
        world.clocks.acquire(0, 0, &second.done());
        world.load(thread(0, 0), 16).unwrap();
        assert_eq!(world.load(thread(0, 0), 0).is_ok(), is_ordered, "{queue:?}");
    }
}

#[test]
fn strong_accesses_do_not_race_with_each_other() {
    let mut world = World::new(64);
    let strong = Touch { name: "atomic", line: 4, scope: Some(Scope::Gpu), is_atomic: true };
    let add = |world: &mut World, warp| world.shared.update(thread(warp, 0), &world.clocks, 0, 4, strong, |old| old + 1).map(|_| ());
    add(&mut world, 0).unwrap();
    add(&mut world, 1).unwrap();
    add(&mut world, 0).unwrap();
    assert!(race(world.load(thread(1, 0), 0)).is_some(), "a plain load races with an atomic");
}

#[test]
fn neighbours_do_not_race_and_overlaps_do() {
    let mut world = World::new(64);
    let store = |world: &mut World, warp, offset, bytes| world.shared.store(thread(warp, 0), &world.clocks, offset, bytes, 9, STORE);
    store(&mut world, 0, 0, 2).unwrap();
    store(&mut world, 1, 2, 1).unwrap();
    store(&mut world, 0, 3, 1).unwrap();
    store(&mut world, 1, 4, 8).unwrap();
    let fault = store(&mut world, 0, 8, 8).unwrap_err();
    assert!(matches!(fault, FaultKind::SharedRace { address: 8, .. }), "{fault}");
    assert!(race(store(&mut world, 0, 0, 4)).is_some());
}

#[test]
fn programs_of_a_cluster_need_its_barrier() {
    let mut world = World::new(40);
    let other = world.clocks.warp(1, 0);
    world.store(thread(other, 6), 0).unwrap();
    assert_eq!(race(world.load(thread(1, 0), 0)), Some((": a barrier of the cluster is missing", [6, 0, 0])));
    world.clocks.barrier(&[(0, Lanes::ALL), (1, Lanes::first(8)), (2, Lanes::ALL), (3, Lanes::first(8))]);
    world.load(thread(1, 7), 0).unwrap();
}

#[test]
fn bytes_in_flight_can_only_be_accessed_by_their_operation() {
    let mut world = World::new(32);
    let owner = Issuer { rank: 0, warp: 0, lane: 0, step: 0 };
    world.shared.mark_pending(16..144, "an asynchronous copy", 9, owner);
    let fault = world.load(thread(0, 0), 140).unwrap_err();
    assert_eq!(fault.to_string(), "shared address 0x8c belongs to an asynchronous copy that was not waited for (line 9)");
    world.store(thread(0, 0), 12).unwrap();
    world.store(thread(0, 0), 144).unwrap();
    world.shared.clear_pending(16..144, Issuer { lane: 1, ..owner });
    world.store(thread(0, 0), 16).unwrap_err();
    world.shared.clear_pending(16..144, owner);
    world.store(thread(0, 0), 16).unwrap();
    world.shared.mark_pending_read(16..32, "a bulk copy", 10, owner);
    world.load(thread(0, 0), 16).unwrap();
    world.store(thread(0, 0), 16).unwrap_err();
}

/// A step of a random program. In each of two warps four lanes execute steps.
#[derive(Clone, Debug)]
enum Step {
    Load { thread: usize, offset: u64, size: u32 },
    Store { thread: usize, offset: u64, size: u32 },
    Barrier { threads: u8 },
    Release { thread: usize, slot: usize },
    Acquire { thread: usize, slot: usize },
}

const THREADS: usize = 8;

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let thread = || 0..THREADS;
    let range =
        || (0u32..4).prop_flat_map(|log| (Just(1 << log), 0u64..16 >> log).prop_map(|(size, index)| (index * u64::from(size), size)));
    let step = prop_oneof![
        3 => (thread(), range()).prop_map(|(thread, (offset, size))| Step::Load { thread, offset, size }),
        2 => (thread(), range()).prop_map(|(thread, (offset, size))| Step::Store { thread, offset, size }),
        3 => any::<u8>().prop_map(|threads| Step::Barrier { threads: threads | 0x3c }),
        2 => (thread(), 0..3usize).prop_map(|(thread, slot)| Step::Release { thread, slot }),
        3 => (thread(), 0..3usize).prop_map(|(thread, slot)| Step::Acquire { thread, slot }),
    ];
    prop::collection::vec(step, 1..60)
}

/// A model with a clock of all threads for each thread, and a list of all accesses.
#[derive(Default)]
struct Model {
    known: [[u32; THREADS]; THREADS],
    slots: [[u32; THREADS]; 3],
    accesses: Vec<(usize, u32, u64, u32, bool)>,
}

fn union(left: [u32; THREADS], right: [u32; THREADS]) -> [u32; THREADS] {
    std::array::from_fn(|thread| left[thread].max(right[thread]))
}

impl Model {
    fn new() -> Model {
        let mut model = Model::default();
        (0..THREADS).for_each(|thread| model.known[thread][thread] = 1);
        model
    }

    /// Whether the access races with an earlier access.
    fn access(&mut self, thread: usize, offset: u64, size: u32, is_store: bool) -> bool {
        let races = self.accesses.iter().any(|&(other, time, start, bytes, other_stores)| {
            let overlaps = start < offset + u64::from(size) && offset < start + u64::from(bytes);
            overlaps && (is_store || other_stores) && self.known[thread][other] < time
        });
        self.accesses.push((thread, self.known[thread][thread], offset, size, is_store));
        races
    }

    fn barrier(&mut self, threads: u8) {
        let all = (0..THREADS).filter(|thread| threads >> thread & 1 == 1);
        let known = all.clone().fold([0; THREADS], |known, thread| union(known, self.known[thread]));
        for thread in all {
            self.known[thread] = known;
            self.known[thread][thread] += 1;
        }
    }
}

/// The hardware coordinates of a thread, its warp and its lane: four threads in each of two warps.
fn coordinates(thread: usize) -> (usize, usize) {
    (thread / 4, [0, 1, 17, 31][thread % 4])
}

proptest! {
    #[test]
    fn races_are_those_of_full_clocks(steps in steps()) {
        let mut world = World::new(64);
        let mut model = Model::new();
        let mut slots: [Stamp; 3] = Default::default();
        for (index, step) in steps.iter().enumerate() {
            let (expected, found) = match *step {
                Step::Load { thread, offset, size } => {
                    let (warp, lane) = coordinates(thread);
                    let touch = Touch::plain("load", index as u32);
                    let agent = Agent::Thread { warp, lane };
                    let found = world.shared.load(agent, &world.clocks, offset, size, touch).is_err();
                    (model.access(thread, offset, size, false), found)
                }
                Step::Store { thread, offset, size } => {
                    let (warp, lane) = coordinates(thread);
                    let touch = Touch::plain("store", index as u32);
                    let agent = Agent::Thread { warp, lane };
                    let found = world.shared.store(agent, &world.clocks, offset, size, index as u128, touch).is_err();
                    (model.access(thread, offset, size, true), found)
                }
                Step::Barrier { threads } => {
                    let lanes = |warp: usize| (0..THREADS).filter(|thread| threads >> thread & 1 == 1 && thread / 4 == warp).map(|thread| coordinates(thread).1).collect();
                    world.clocks.barrier(&[(0, lanes(0)), (1, lanes(1))]);
                    model.barrier(threads);
                    (false, false)
                }
                Step::Release { thread, slot } => {
                    let (warp, lane) = coordinates(thread);
                    slots[slot].join(&world.clocks.release(warp, lane));
                    model.slots[slot] = union(model.slots[slot], model.known[thread]);
                    model.known[thread][thread] += 1;
                    (false, false)
                }
                Step::Acquire { thread, slot } => {
                    let (warp, lane) = coordinates(thread);
                    world.clocks.acquire(warp, lane, &slots[slot]);
                    model.known[thread] = union(model.known[thread], model.slots[slot]);
                    (false, false)
                }
            };
            prop_assert_eq!(found, expected, "step {}", index);
            if expected {
                break;
            }
        }
    }
}
