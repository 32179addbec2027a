//! Tests of bulk copies, one instruction at a time.

use crate::fault::FaultKind;
use crate::instructions::Progress;
use crate::instructions::harness::{Failure, Harness, refusal, with_registers};
use crate::lanes::Lanes;
use crate::memory::GlobalMemory;
use crate::ptx::Space;
use crate::tensor_map::{ElementType, Fill, Interleave, Promotion, Swizzle, TensorMap};

/// One thread with an mbarrier `bar` of count 1, a shared variable `tile`, and 1024 bytes of global memory at `%d1` with ascending words.
fn thread() -> (Harness, GlobalMemory) {
    let memory = GlobalMemory::new(1 << 20);
    let address = memory.allocate(1024).unwrap();
    let words: Vec<u8> = (0..256u32).flat_map(u32::to_le_bytes).collect();
    memory.write(address, &words).unwrap();
    let mut harness = with_registers();
    harness.grid.global = memory.view();
    harness.define("%d1", crate::ptx::Type::B64, |_| address);
    harness.variable("bar", Space::Shared, 8);
    harness.variable("tile", Space::Shared, 1024);
    harness.lanes = Lanes::of(0);
    harness.run("mbarrier.init.shared::cta.b64 [bar], 1;").unwrap();
    (harness, memory)
}

fn complete(harness: &mut Harness) -> Result<(), Failure> {
    let mut flying = harness.cluster.in_flight.pop_front().expect("something is in flight");
    let result = flying.operation.complete(&mut harness.cluster, &harness.grid, flying.issuer);
    result.map_err(|trap| Failure::Trap(trap.lane, *trap.kind))
}

fn word(memory: &GlobalMemory, address: u64) -> u32 {
    let mut bytes = [0; 4];
    memory.read(address, &mut bytes).unwrap();
    u32::from_le_bytes(bytes)
}

const LOAD: &str = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%d1+16], 64, [bar];";
const WAIT: &str = "mbarrier.try_wait.parity.shared::cta.b64 %p0, [bar], 0;";

#[test]
fn bytes_arrive_with_the_phase_that_counts_them() {
    let (mut harness, _memory) = thread();
    harness.run("mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 64;").unwrap();
    harness.run(LOAD).unwrap();
    assert_eq!(harness.run(WAIT), Ok(Progress::Yield));
    let early = harness.run("ld.shared.b32 %r0, [tile];");
    assert!(matches!(early, Err(Failure::Trap(0, FaultKind::PendingAsync { address: 1024, .. }))), "{early:?}");
    complete(&mut harness).unwrap();
    let unordered = harness.run("ld.shared.b32 %r0, [tile];");
    assert!(matches!(unordered, Err(Failure::Trap(0, FaultKind::SharedRace { .. }))), "{unordered:?}");
    assert_eq!(harness.run(WAIT), Ok(Progress::Done));
    harness.run("ld.shared.b32 %r0, [tile+60];").unwrap();
    assert_eq!(harness.value("%r0")[0], 4 + 15);
}

#[test]
fn bytes_stay_pending_until_the_whole_phase_is_complete() {
    let (mut harness, _memory) = thread();
    harness.run("mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 80;").unwrap();
    harness.run(LOAD).unwrap();
    complete(&mut harness).unwrap();
    assert_eq!(harness.run(WAIT), Ok(Progress::Yield));
    assert!(matches!(harness.run("ld.shared.b32 %r0, [tile];"), Err(Failure::Trap(0, FaultKind::PendingAsync { .. }))));
}

#[test]
fn sizes_and_addresses_are_multiples_of_16() {
    let (mut harness, _memory) = thread();
    let mut run = |text: &str| match harness.run(text) {
        Err(Failure::Trap(_, kind)) => kind.to_string(),
        other => panic!("{other:?}"),
    };
    let copy = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes";
    assert_eq!(run(&format!("{copy} [tile], [%d1], 24, [bar];")), "the size of a bulk copy is a multiple of 16, not 24");
    assert_eq!(run(&format!("{copy} [tile+8], [%d1], 32, [bar];")), "shared address 0x408 is not a multiple of 16");
    assert!(run(&format!("{copy} [tile], [%d1+8], 32, [bar];")).ends_with("is not a multiple of 16"));
    assert_eq!(run(&format!("{copy} [tile], [%d1], 32, [bar+16];")), "mbarrier at shared address 0x18: it is not initialised");
    assert_eq!(
        run(&format!("{copy}.multicast::cluster [tile], [%d1], 32, [bar], 2;")),
        "the CTA mask 0x2 of a multicast in a cluster of 1 CTAs"
    );
}

#[test]
fn a_store_needs_the_proxy_fence_and_its_wait() {
    let store = "cp.async.bulk.global.shared::cta.bulk_group [%d1], [tile], 16;";
    let (mut harness, _memory) = thread();
    harness.run("st.shared.v4.b32 [tile], {7, 8, 9, 10};").unwrap();
    harness.run(store).unwrap();
    let Err(Failure::Trap(0, FaultKind::SharedRace { hint, .. })) = complete(&mut harness) else { panic!("no race was found") };
    assert_eq!(hint, ": `fence.proxy.async` is missing");

    let (mut harness, memory) = thread();
    let address = harness.value("%d1")[0];
    harness.run("st.shared.v4.b32 [tile], {7, 8, 9, 10};").unwrap();
    harness.run("fence.proxy.async.shared::cta;").unwrap();
    harness.run(store).unwrap();
    harness.run("cp.async.bulk.commit_group;").unwrap();
    harness.run("cp.async.bulk.wait_group 1;").unwrap();
    let early = harness.run("st.shared.b32 [tile], 0;");
    assert!(matches!(early, Err(Failure::Trap(0, FaultKind::PendingAsync { .. }))), "{early:?}");
    harness.run("cp.async.bulk.wait_group.read 0;").unwrap();
    assert_eq!(word(&memory, address), 0, "it was read only");
    harness.run("st.shared.b32 [tile], 0;").unwrap();
    harness.run("cp.async.bulk.wait_group 0;").unwrap();
    assert_eq!((word(&memory, address), word(&memory, address + 12)), (7, 10));
    assert!(harness.cluster.in_flight.is_empty());
}

#[test]
fn a_reduction_combines_each_element() {
    let (mut harness, memory) = thread();
    let address = harness.value("%d1")[0];
    harness.run("st.shared.v4.b32 [tile], {100, 0, 5, 1};").unwrap();
    harness.run("fence.proxy.async.shared::cta;").unwrap();
    harness.run("cp.reduce.async.bulk.global.shared::cta.bulk_group.max.u32 [%d1], [tile], 16;").unwrap();
    harness.run("cp.async.bulk.commit_group;").unwrap();
    harness.run("cp.async.bulk.wait_group 0;").unwrap();
    assert_eq!([0, 4, 8, 12].map(|at| word(&memory, address + at)), [100, 1, 5, 3]);
    let refused = |text: &str| refusal(&format!("cp.reduce.async.bulk.{text} [%d0], [%r0], 16;"));
    assert_eq!(
        refused("global.shared::cta.bulk_group.add.f16"),
        Some("`.noftz` belongs to `.add` of `.f16` and `.bf16`, which has to have it".to_owned())
    );
    assert_eq!(refused("global.shared::cta.bulk_group.min.f32"), Some("this reduction has no type `.f32`".to_owned()));
    assert_eq!(
        refused("shared::cluster.global.bulk_group.add.u32"),
        Some("a bulk copy can not go to `.shared::cluster` from `.global`".to_owned())
    );
}

/// A tensor of 8 rows of 32 words, with a box of 4 rows of 8 words.
fn map(address: u64, swizzle: Swizzle) -> TensorMap {
    TensorMap {
        element: ElementType::U32,
        global_address: address,
        extents: vec![32, 8],
        strides: vec![128],
        box_extents: vec![8, 4],
        element_strides: vec![1, 1],
        interleave: Interleave::None,
        swizzle,
        promotion: Promotion::None,
        fill: Fill::Zero,
    }
}

/// As [`thread`]. The kernel's parameter is the map, and `%d2` points to it.
fn with_map(swizzle: Swizzle) -> (Harness, GlobalMemory) {
    let (mut harness, memory) = thread();
    harness.grid.params = map(harness.value("%d1")[0], swizzle).encode().unwrap().to_vec();
    harness.define("%d2", crate::ptx::Type::B64, |_| 0x3_0000_0000);
    (harness, memory)
}

#[test]
fn a_box_partly_outside_reads_zeros_and_counts_in_full() {
    let (mut harness, _memory) = with_map(Swizzle::None);
    harness.run("mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 128;").unwrap();
    harness.define("%r1", crate::ptx::Type::B32, |_| 28);
    harness
        .run("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [tile], [%d2, {%r1, 6}], [bar];")
        .unwrap();
    complete(&mut harness).unwrap();
    assert_eq!(harness.run(WAIT), Ok(Progress::Done));
    let mut row = |row: u32| {
        (0..8)
            .map(|column| {
                harness.run(&format!("ld.shared.b32 %r0, [tile+{}];", row * 32 + column * 4)).unwrap();
                harness.value("%r0")[0]
            })
            .collect::<Vec<_>>()
    };
    assert_eq!(row(0), [220, 221, 222, 223, 0, 0, 0, 0]);
    assert_eq!(row(1), [252, 253, 254, 255, 0, 0, 0, 0]);
    assert_eq!(row(2), [0; 8]);
}

#[test]
fn a_swizzled_box_has_its_pieces_exchanged() {
    let (mut harness, _memory) = with_map(Swizzle::Bytes32);
    harness.run("mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 256;").unwrap();
    let copy = "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes";
    harness.run(&format!("{copy} [tile], [%d2, {{0, 0}}], [bar];")).unwrap();
    harness.run(&format!("{copy} [tile+128], [%d2, {{0, 4}}], [bar];")).unwrap();
    complete(&mut harness).unwrap();
    complete(&mut harness).unwrap();
    assert_eq!(harness.run(WAIT), Ok(Progress::Done));
    let mut at = |offset: u32| {
        harness.run(&format!("ld.shared.b32 %r0, [tile+{offset}];")).unwrap();
        harness.value("%r0")[0]
    };
    // Address bit 7 is set in the second box, so its 16-byte chunks are exchanged.
    assert_eq!([at(0), at(16), at(32), at(128), at(144), at(160)], [0, 4, 32, 132, 128, 164]);
}

#[test]
fn a_stored_box_leaves_out_what_is_outside() {
    let (mut harness, memory) = with_map(Swizzle::None);
    let address = harness.value("%d1")[0];
    for offset in (0..128).step_by(16) {
        harness.run(&format!("st.shared.v4.b32 [tile+{offset}], {{1000, 1001, 1002, 1003}};")).unwrap();
    }
    harness.run("fence.proxy.async;").unwrap();
    harness.run("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%d2, {-4, 7}], [tile];").unwrap();
    harness.run("cp.async.bulk.commit_group;").unwrap();
    harness.run("cp.async.bulk.wait_group 0;").unwrap();
    assert_eq!([0, 12, 16].map(|at| word(&memory, address + 7 * 128 + at)), [1000, 1003, 7 * 32 + 4]);
    assert_eq!(word(&memory, address + 6 * 128 + 124), 6 * 32 + 31);
}

#[test]
fn bytes_that_are_no_tensor_map_are_refused() {
    let (mut harness, _memory) = with_map(Swizzle::None);
    let copy = "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes";
    let mut run = |text: &str| match harness.run(text) {
        Err(Failure::Trap(_, kind)) => kind.to_string(),
        Err(Failure::Unsupported(reason)) => reason,
        other => panic!("{other:?}"),
    };
    assert_eq!(run(&format!("{copy} [tile], [%d1, {{0, 0}}], [bar];")), "these 128 bytes are no tensor map");
    assert_eq!(run(&format!("{copy} [tile+64], [%d2, {{0, 0}}], [bar];")), "shared address 0x440 is not a multiple of 128");
    assert_eq!(run(&format!("{copy} [tile], [%d2, {{0, 0, 0}}], [bar];")), "2 coordinates are wanted, not 3");
    assert_eq!(
        run(&format!("{} [tile], [%d2, {{0}}], [bar];", copy.replace("2d", "1d"))),
        "the tensor map has 2 dimensions, and the instruction 1"
    );
}
