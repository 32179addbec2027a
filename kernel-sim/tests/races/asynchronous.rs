//! Races with asynchronous copies: `cp.async` and bulk copies, which use global memory until they are waited for.

use crate::harness::{CTA, Planted};

const NOTHING: &str = "mov.u32 %r31, 0;";
const ONE: [u32; 3] = [1, 32, 1];

pub(crate) const RACES: &[Planted] = &[
    Planted {
        name: "the source of a cp.async is overwritten before the wait",
        launch: ONE,
        ptx: "cp.async.ca.shared.global [%r4], [%rd3], 4;\n@@\nst.global.u32 [%rd3], %r0;\ncp.async.wait_all;",
        wrong: NOTHING,
        right: Some("cp.async.wait_all;"),
        lines: [1, 3],
    },
    Planted {
        name: "the source of a cp.async is overwritten by another warp, without a barrier behind the wait",
        launch: CTA,
        ptx: "cp.async.ca.shared.global [%r4], [%rd3], 4; cp.async.wait_all;\n@@\nst.global.u32 [%rd5], %r0;",
        wrong: NOTHING,
        right: Some("bar.sync 0;"),
        lines: [1, 3],
    },
    Planted {
        name: "a barrier, but too many groups may still be in flight",
        launch: CTA,
        ptx: "cp.async.ca.shared.global [%r4], [%rd3], 4; cp.async.commit_group;\ncp.async.wait_group @@; bar.sync 0;\nst.global.u32 [%rd5], %r0;\ncp.async.wait_all;",
        wrong: "1",
        right: Some("0"),
        lines: [1, 3],
    },
    Planted {
        name: "a cp.async of what another warp stored",
        launch: CTA,
        ptx: "st.global.u32 [%rd5], %r0;\n@@\ncp.async.ca.shared.global [%r4], [%rd3], 4; cp.async.wait_all;",
        wrong: NOTHING,
        right: Some("bar.sync 0;"),
        lines: [1, 3],
    },
    Planted {
        name: "a cp.async that is read before its wait",
        launch: ONE,
        ptx: "cp.async.ca.shared.global [%r4], [%rd3], 4;\n@@\nld.shared.u32 %r10, [%r4];",
        wrong: NOTHING,
        right: Some("cp.async.wait_all;"),
        lines: [1, 3],
    },
    Planted {
        name: "another warp reads a copy without a barrier behind the wait",
        launch: CTA,
        ptx: "cp.async.ca.shared.global [%r4], [%rd3], 4; cp.async.wait_all; @@\nld.shared.u32 %r10, [%r2];",
        wrong: NOTHING,
        right: Some("bar.sync 0;"),
        lines: [1, 2],
    },
    Planted {
        name: "a bulk copy of what was stored without a proxy fence",
        launch: ONE,
        ptx: "@!%p0 bra DONE;\nst.global.u32 [%rd1], 5;\n@@\nINIT\ncp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%rd1], 64, [bar];\nWAIT: mbarrier.try_wait.parity.shared::cta.b64 %p4, [bar], 0; @!%p4 bra WAIT;\nDONE:",
        wrong: "fence.proxy.async.shared::cta;",
        right: Some("fence.proxy.async.global;"),
        lines: [2, 5],
    },
    Planted {
        name: "the source of a bulk copy is overwritten before the wait",
        launch: ONE,
        ptx: "@!%p0 bra DONE;\nINIT\ncp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%rd1], 64, [bar];\n@@\nst.global.u32 [%rd1+16], 5;\nDONE:",
        wrong: NOTHING,
        right: Some("WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p4, [bar], 0; @!%p4 bra WAIT;"),
        lines: [3, 5],
    },
    Planted {
        name: "a bulk copy that is read before the wait",
        launch: ONE,
        ptx: "@!%p0 bra DONE;\nINIT\ncp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%rd1], 64, [bar];\n@@\nld.shared.u32 %r10, [tile];\nDONE:",
        wrong: NOTHING,
        right: Some("WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p4, [bar], 0; @!%p4 bra WAIT;"),
        lines: [3, 5],
    },
    Planted {
        name: "the target of a bulk store is read when only its source was waited for",
        launch: ONE,
        ptx: "st.shared.u32 [%r4], %r0; fence.proxy.async; bar.warp.sync -1; @!%p0 bra DONE;\ncp.async.bulk.global.shared::cta.bulk_group [%rd1], [tile], 64; cp.async.bulk.commit_group;\ncp.async.bulk.wait_group@@ 0;\nld.global.u32 %r10, [%rd1+8];\ncp.async.bulk.wait_group 0;\nDONE:",
        wrong: ".read",
        right: Some(""),
        lines: [2, 4],
    },
    Planted {
        name: "the target of a bulk store is written without a wait",
        launch: ONE,
        ptx: "st.shared.u32 [%r4], %r0; fence.proxy.async; bar.warp.sync -1; @!%p0 bra DONE;\ncp.async.bulk.global.shared::cta.bulk_group [%rd1], [tile], 64; cp.async.bulk.commit_group;\n@@\nst.global.u32 [%rd1], 5;\ncp.async.bulk.wait_group 0;\nDONE:",
        wrong: NOTHING,
        right: Some("cp.async.bulk.wait_group 0;"),
        lines: [2, 4],
    },
    Planted {
        name: "two programs store one element by bulk copies",
        launch: [4, 32, 1],
        ptx: "st.shared.u32 [%r4], %r0; fence.proxy.async; bar.warp.sync -1; @!%p0 bra DONE;\ncp.async.bulk.global.shared::cta.bulk_group [%rd@@], [tile], 64; cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;\nDONE:",
        wrong: "1",
        right: Some("4"),
        lines: [2, 2],
    },
    Planted {
        name: "a weak load beside a bulk reduction of another program",
        launch: [4, 32, 1],
        ptx: "st.shared.u32 [%r4], %r0; fence.proxy.async; bar.warp.sync -1; @!%p0 bra DONE;\n@!%p2 ld.global.u32 %r10, [%rd1+@@];\ncp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%rd1], [tile], 64; cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;\nDONE:",
        wrong: "60",
        right: Some("64"),
        lines: [2, 3],
    },
];
