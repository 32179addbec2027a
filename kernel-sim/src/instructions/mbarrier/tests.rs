//! Tests of `mbarrier`, one instruction at a time.

use crate::fault::FaultKind;
use crate::instructions::Progress;
use crate::instructions::harness::{Failure, Harness, with_registers};
use crate::lanes::Lanes;
use crate::ptx::Space;

/// A warp with an mbarrier `bar` of this count. Lane 0 initialised it, and the initialisation happens before the warp's next instruction.
fn initialised(count: u32) -> Harness {
    let mut harness = with_registers();
    harness.variable("bar", Space::Shared, 64);
    harness.variable("data", Space::Shared, 128);
    harness.lanes = Lanes::of(0);
    harness.run(&format!("mbarrier.init.shared::cta.b64 [bar], {count};")).unwrap();
    harness.cluster.clocks.barrier(&[(0, Lanes::ALL)]);
    harness
}

fn reason(result: Result<Progress, Failure>) -> String {
    match result {
        Err(Failure::Trap(_, FaultKind::Mbarrier { address: 64, reason })) => reason,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_last_arrival_ends_the_phase() {
    let mut harness = initialised(32);
    harness.lanes = Lanes::first(31);
    harness.run("mbarrier.arrive.shared.b64 %d0, [bar];").unwrap();
    let state = harness.value("%d0");
    assert_eq!(harness.run("mbarrier.test_wait.shared.b64 %p0, [bar], %d0;"), Ok(Progress::Yield));
    harness.run("mbarrier.pending_count.b64 %r0, %d0;").unwrap();
    assert_eq!((harness.value("%r0")[0], harness.value("%r0")[30]), (32, 2));
    harness.lanes = Lanes::of(31);
    harness.run("mbarrier.arrive.release.cta.shared::cta.b64 _, [bar];").unwrap();
    harness.lanes = Lanes::first(31);
    assert_eq!(harness.run("mbarrier.try_wait.shared::cta.b64 %p0, [bar], %d0, 1000;"), Ok(Progress::Done));
    assert_eq!((harness.value("%p0")[0], harness.value("%d0")), (1, state));
    assert_eq!(harness.run("mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 %p1, [bar], 1;"), Ok(Progress::Yield));
    assert_eq!(harness.run("mbarrier.try_wait.parity.shared::cta.b64 %p1, [bar], 0;"), Ok(Progress::Done));
}

#[test]
fn misuse_is_found() {
    let mut harness = initialised(3);
    let too_many = "1 arrivals, and its phase 1 waits for 0 more and 16 bytes";
    harness.lanes = Lanes::first(3);
    harness.run("mbarrier.arrive.shared.b64 _, [bar];").unwrap();
    harness.lanes = Lanes::of(0);
    harness.run("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [bar], 16;").unwrap();
    harness.lanes = Lanes::first(4);
    assert_eq!(reason(harness.run("mbarrier.arrive.shared.b64 _, [bar];")), too_many);
    harness.lanes = Lanes::of(0);
    assert_eq!(reason(harness.run("mbarrier.test_wait.parity.shared.b64 %p0, [bar], 2;")), "the parity of a phase is 0 or 1, not 2");
    assert!(reason(harness.run("mbarrier.init.shared.b64 [bar], 3;")).contains("initialised again"));
    harness.cluster.clocks.barrier(&[(0, Lanes::ALL)]);
    harness.run("st.shared.b64 [bar], 5;").unwrap();
    assert!(reason(harness.run("mbarrier.arrive.shared.b64 _, [bar];")).contains("something was stored over it"));
    let mut harness = initialised(1);
    assert!(reason(harness.run("mbarrier.arrive.noComplete.shared.b64 %d0, [bar], 1;")).contains("`.noComplete` says that it is not"));
    harness.run("mbarrier.inval.shared.b64 [bar];").unwrap();
    assert_eq!(reason(harness.run("mbarrier.arrive.shared.b64 _, [bar];")), "it is not initialised");
}

#[test]
fn a_state_of_two_phases_ago_can_not_be_waited_for() {
    let mut harness = initialised(1);
    harness.run("mbarrier.arrive.shared.b64 %d0, [bar];").unwrap();
    harness.run("mbarrier.arrive.shared.b64 _, [bar];").unwrap();
    let found = reason(harness.run("mbarrier.test_wait.shared.b64 %p0, [bar], %d0;"));
    assert_eq!(found, "the state is of phase 0, and only the current phase 2 and the one before it can be waited for");
}

#[test]
fn a_use_that_is_not_ordered_after_the_initialisation_is_a_race() {
    let mut harness = with_registers();
    harness.variable("bar", Space::Shared, 64);
    harness.lanes = Lanes::of(0);
    harness.run("mbarrier.init.shared.b64 [bar], 2;").unwrap();
    harness.run("mbarrier.arrive.shared.b64 _, [bar];").unwrap();
    harness.lanes = Lanes::of(1);
    let result = harness.run("mbarrier.arrive.shared.b64 _, [bar];");
    assert!(matches!(result, Err(Failure::Trap(1, FaultKind::SharedRace { address: 64, .. }))), "{result:?}");
}

#[test]
fn a_wait_orders_what_was_released() {
    let run = |arrive: &str, wait: &str| {
        let mut harness = initialised(1);
        harness.lanes = Lanes::of(0);
        harness.run("st.shared.b32 [data], 7;").unwrap();
        harness.run(arrive).unwrap();
        harness.lanes = Lanes::of(1);
        assert_eq!(harness.run(wait), Ok(Progress::Done));
        harness.run("ld.shared.b32 %r0, [data];")
    };
    let (arrive, wait) = ("mbarrier.arrive.shared.b64 _, [bar];", "mbarrier.try_wait.parity.shared.b64 %p0, [bar], 0;");
    assert_eq!(run(arrive, wait), Ok(Progress::Done));
    let races = |result| matches!(result, Err(Failure::Trap(1, FaultKind::SharedRace { .. })));
    assert!(races(run("mbarrier.arrive.relaxed.cta.shared::cta.b64 _, [bar];", wait)));
    assert!(races(run(arrive, "mbarrier.try_wait.parity.relaxed.cta.shared::cta.b64 %p0, [bar], 0;")));
}
