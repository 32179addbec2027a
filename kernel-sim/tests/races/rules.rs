//! Reports of races: a report names both accesses, many races give one report, and races between programs can be allowed.

use kernel_sim::FaultKind;

use crate::harness::{Planted, check, found, is_allowed};
use crate::programs;

#[test]
fn both_accesses_are_named() {
    let fault = found(&programs::RACES[2]);
    let text = fault.to_string();
    let FaultKind::GlobalRace { address, element, other_cta, other_thread, .. } = fault.kind else { panic!("{text}") };
    assert_eq!((fault.cta, fault.thread, fault.line), ([1, 0, 0], [0; 3], 3));
    assert_eq!((element, other_cta, other_thread), (32, [0; 3], [31, 0, 0]));
    let start = address - 128;
    let (said, instruction) = text.split_once("\n  PTX line ").unwrap();
    assert!(instruction.ends_with(": st.global.u32 [%rd4], %r10;"), "{text}");
    assert_eq!(
        said,
        format!(
            "kernel `planted`: global memory race at address {address:#x}, element 32 of 4 bytes in a 4096-byte allocation at {start:#x}: this \
             store and a load by thread [31, 0, 0] of program [0, 0, 0] (line 1) are not ordered: programs that share an element need atomics, \
             or a release and an acquire between them\n  byte 128 of argument `data`\n  at kernel.rs:3:5\n  in program [1, 0, 0], thread [0, 0, 0]"
        )
    );
}

#[test]
fn races_can_be_allowed() {
    for planted in crate::all() {
        // Some other races remain faults even so: memory in use by an asynchronous copy must not be accessed.
        if planted.name.contains("two programs") {
            assert!(is_allowed(planted), "{}", planted.name);
        }
    }
}

#[test]
fn the_report_of_many_races_is_the_first() {
    let planted = Planted {
        name: "all programs store all elements",
        launch: [100, 96, 1],
        ptx: "mov.u32 %r10, %r1;\nst.global.u32 [%rd3], %r10;\n@@",
        wrong: "",
        right: None,
        lines: [2, 2],
    };
    check(&planted);
    let fault = found(&planted);
    assert_eq!((fault.cta, fault.thread), ([1, 0, 0], [0; 3]));
}
