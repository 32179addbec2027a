//! Races in shared memory.

use crate::harness::{CTA, Planted};

const NOTHING: &str = "mov.u32 %r31, 0;";

pub(crate) const RACES: &[Planted] = &[
    Planted {
        name: "shared: a load of what another warp stores, without a barrier",
        launch: CTA,
        ptx: "st.shared.u32 [%r4], %r0; bar.sync 0;\nst.shared.u32 [%r4], %r0;\n@@\nld.shared.u32 %r10, [%r2];",
        wrong: NOTHING,
        right: Some("bar.sync 0;"),
        lines: [2, 4],
    },
    Planted {
        name: "shared: a store after another warp's load",
        launch: CTA,
        ptx: "st.shared.u32 [%r4], %r0; bar.sync 0;\nld.shared.u32 %r10, [%r2];\n@@\nst.shared.u32 [%r4], %r10;",
        wrong: NOTHING,
        right: Some("bar.sync 0;"),
        lines: [2, 4],
    },
    Planted {
        name: "shared: different values from the threads of one store",
        launch: CTA,
        ptx: "@@\nst.shared.u32 [%r5], %r10;",
        wrong: "mov.u32 %r10, %r0;",
        right: Some("mov.u32 %r10, 7;"),
        lines: [2, 2],
    },
    Planted {
        name: "shared: a flag that is not released",
        launch: CTA,
        ptx: "mov.u32 %r10, 0; st.shared.u32 [%r4], %r10; bar.sync 0; @!%p1 bra READ;\n@%p0 st.shared.u32 [%r5+4], 5;\n@%p0 st.@@.cta.shared.u32 [%r5], 1;\nbra.uni DONE;\nREAD: ld.acquire.cta.shared.u32 %r10, [%r5]; setp.eq.u32 %p4, %r10, 0; @%p4 bra READ;\nld.shared.u32 %r11, [%r5+4];\nDONE:",
        wrong: "relaxed",
        right: Some("release"),
        lines: [2, 6],
    },
    Planted {
        name: "shared: a weak store beside an atomic",
        launch: CTA,
        ptx: "mov.u32 %r10, 0; st.shared.u32 [%r4], %r10; bar.sync 0; @%p1 bra ADD;\nst.shared.u32 [%r5+@@], %r10;\nbra.uni DONE;\nADD:\n@%p0 atom.shared.add.u32 %r11, [%r5], 1;\nDONE:",
        wrong: "0",
        right: Some("4"),
        lines: [2, 5],
    },
    Planted {
        name: "shared: an atomic of the warp that has just set the element hides nothing",
        launch: CTA,
        ptx: "mov.u32 %r10, 0; @%p0 st.shared.u32 [%r5], %r10; bar.sync 0;\n@%p0 st.shared.u32 [%r5], %r10;\n@@\natom.shared.add.u32 %r11, [%r5], 1;",
        wrong: NOTHING,
        right: Some("bar.sync 0;"),
        lines: [2, 4],
    },
];
