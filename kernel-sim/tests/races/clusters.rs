//! Races between programs of one cluster, in global memory and in the shared memory of another one.

use crate::harness::{CLUSTER, Planted};

const NOTHING: &str = "mov.u32 %r31, 0;";

pub(crate) const RACES: &[Planted] = &[
    Planted {
        name: "a load of what another program of the cluster stores",
        launch: CLUSTER,
        ptx: "st.global.u32 [%rd4], %r0;\n@@\nxor.b32 %r10, %r3, 32; mul.wide.u32 %rd6, %r10, 4; add.s64 %rd6, %rd1, %rd6;\nld.global.u32 %r11, [%rd6];",
        wrong: NOTHING,
        right: Some("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;"),
        lines: [1, 4],
    },
    Planted {
        name: "a barrier of the program in place of one of the cluster",
        launch: CLUSTER,
        ptx: "st.global.u32 [%rd4], %r0;\n@@\nxor.b32 %r10, %r3, 32; mul.wide.u32 %rd6, %r10, 4; add.s64 %rd6, %rd1, %rd6;\nld.global.u32 %r11, [%rd6];",
        wrong: "bar.sync 0;",
        right: Some("barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;"),
        lines: [1, 4],
    },
    Planted {
        name: "a relaxed arrival at the barrier of the cluster",
        launch: CLUSTER,
        ptx: "st.global.u32 [%rd4], %r0;\n@@\nbarrier.cluster.wait.aligned;\nxor.b32 %r10, %r3, 32; mul.wide.u32 %rd6, %r10, 4; add.s64 %rd6, %rd1, %rd6;\nld.global.u32 %r11, [%rd6];",
        wrong: "barrier.cluster.arrive.relaxed.aligned;",
        right: Some("fence.acq_rel.cluster; barrier.cluster.arrive.relaxed.aligned;"),
        lines: [1, 5],
    },
    Planted {
        name: "a release in the scope of the program, for another one of the cluster",
        launch: CLUSTER,
        ptx: "@!%p2 bra READ;\n@%p0 st.global.u32 [%rd1], 5;\n@%p0 st.release.@@.global.u32 [%rd2], 1;\nbra.uni DONE;\nREAD: ld.acquire.gpu.global.u32 %r10, [%rd2]; setp.eq.u32 %p4, %r10, 0; @%p4 bra READ;\nld.global.u32 %r11, [%rd1];\nDONE:",
        wrong: "cta",
        right: Some("cluster"),
        // The flag itself is no race that all orders show: its two accesses are one.
        lines: [3, 5],
    },
    Planted {
        name: "atomics in the scope of the program on what a cluster shares",
        launch: CLUSTER,
        ptx: "@%p0 red.relaxed.@@.global.add.u32 [%rd1], 1;",
        wrong: "cta",
        right: Some("cluster"),
        lines: [1, 1],
    },
    Planted {
        name: "a store to the shared memory of another program, read without a barrier of the cluster",
        launch: CLUSTER,
        ptx: "mov.u32 %r10, 0; st.shared.u32 [%r4], %r10; barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;\nmov.u32 %r10, %cluster_ctarank; xor.b32 %r10, %r10, 1; mapa.shared::cluster.u32 %r11, %r4, %r10;\nst.shared::cluster.u32 [%r11], %r0;\n@@\nld.shared.u32 %r12, [%r4];\nbarrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;",
        wrong: NOTHING,
        right: Some("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;"),
        lines: [3, 5],
    },
    Planted {
        name: "atomics in the scope of the program on shared memory of another one",
        launch: CLUSTER,
        ptx: "mov.u32 %r10, 0; st.shared.u32 [%r4], %r10; barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;\nmapa.shared::cluster.u32 %r11, %r5, 0;\n@%p0 atom.relaxed.@@.shared::cluster.add.u32 %r12, [%r11], 1;\nbarrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;",
        wrong: "cta",
        right: Some("cluster"),
        lines: [3, 3],
    },
];
