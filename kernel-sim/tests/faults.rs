//! Planted mistakes: each is found, with its source line and its thread; and the same kernel without the mistake runs.

use kernel_sim::{Argument, Counters, Fault, FaultKind, Gpu, Launch, LaunchError, Machine, Options};

/// A kernel of 64 threads in a CTA with one pointer parameter: `body` stands after `%rd1` = the pointer, `%r0` = the thread, and
/// `%rd2` = the address of the thread's own word. Line `n` of the body is line `n` of `kernel.rs`.
fn kernel(body: &str) -> String {
    let lines: String = body.trim().lines().enumerate().map(|(line, text)| format!(".loc 1 {} 5\n{text}\n", line + 1)).collect();
    format!(
        ".version 8.0\n.target sm_90a\n.address_size 64\n.file 1 \"kernel.rs\"\n
        .visible .entry planted(.param .u64 pointer) {{
            .reg .pred %p<8>; .reg .b32 %r<16>; .reg .b64 %rd<16>; .reg .f32 %f<8>;
            .shared .align 128 .b8 tile[8192];
            ld.param.u64 %rd0, [pointer];
            cvta.to.global.u64 %rd1, %rd0;
            mov.u32 %r0, %tid.x;
            mul.wide.u32 %rd2, %r0, 4;
            add.s64 %rd2, %rd1, %rd2;
            {lines}
            ret;
        }}"
    )
}

/// Runs a kernel of two warps over 64 words that hold 0 to 63.
fn run(body: &str) -> Result<(Counters, Vec<u32>), LaunchError> {
    run_with(body, Options::default())
}

fn run_with(body: &str, options: Options) -> Result<(Counters, Vec<u32>), LaunchError> {
    let machine = Machine::new(Gpu::h200());
    let module = machine.load(&kernel(body)).unwrap_or_else(|error| panic!("{error}"));
    let pointer = machine.allocate(256).unwrap();
    let words: Vec<u8> = (0..64u32).flat_map(u32::to_le_bytes).collect();
    machine.write(pointer, &words).unwrap();
    let launch = Launch { options, ..Launch::new([1; 3], [64, 1, 1], &[]) };
    let counters = machine.launch(&module.kernel("planted").unwrap(), &Launch { params: &[&pointer.to_le_bytes()], ..launch })?;
    let mut bytes = vec![0; 256];
    machine.read(pointer, &mut bytes).unwrap();
    Ok((counters, bytes.chunks(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect()))
}

/// The fault of a kernel, whose first line is 1.
#[track_caller]
fn fault(body: &str) -> Fault {
    match run(body) {
        Err(LaunchError::Fault(fault)) => {
            assert_eq!(fault.file.as_deref(), Some("kernel.rs"), "{fault}");
            *fault
        }
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("nothing was found"),
    }
}

/// A kernel that must run.
#[track_caller]
fn fine(body: &str) -> Vec<u32> {
    for seed in [0, 1, 2, 3] {
        if let Err(error) = run_with(body, Options { seed, ..Options::default() }) {
            panic!("seed {seed}: {error}");
        }
    }
    run(body).unwrap_or_else(|error| panic!("{error}")).1
}

#[test]
fn store_out_of_bounds() {
    let found = fault("add.u32 %r1, %r0, 1;\nst.global.u32 [%rd2+4], %r1;");
    assert_eq!((found.line, found.thread), (2, [63, 0, 0]));
    assert!(matches!(found.kind, FaultKind::OutOfBounds { bytes: 4, .. }), "{found}");
    fine("add.u32 %r1, %r0, 1;\nst.global.u32 [%rd2], %r1;");
}

#[test]
fn load_before_the_allocation() {
    let found = fault("ld.global.u32 %r1, [%rd2+-4];");
    assert_eq!((found.line, found.thread), (1, [0; 3]));
    assert!(matches!(found.kind, FaultKind::OutOfBounds { .. }), "{found}");
}

#[test]
fn memory_that_was_freed() {
    let machine = Machine::new(Gpu::h200());
    let module = machine.load(&kernel("ld.global.u32 %r1, [%rd2];")).unwrap();
    let pointer = machine.allocate(256).unwrap();
    machine.fill(pointer, &[0], 256).unwrap();
    let launch =
        |pointer: u64| machine.launch(&module.kernel("planted").unwrap(), &Launch::new([1; 3], [64, 1, 1], &[&pointer.to_le_bytes()]));
    launch(pointer).unwrap();
    machine.free(pointer).unwrap();
    machine.allocate(256).unwrap();
    match launch(pointer) {
        Err(LaunchError::Fault(fault)) => {
            assert!(matches!(fault.kind, FaultKind::Freed { .. }), "{fault}");
            assert_eq!(fault.element().as_deref(), Some("byte 0 of argument `pointer`"));
        }
        other => panic!("{other:?}"),
    }
}

/// The fault of a launch that describes the pointer's memory as 10 elements of 8 bytes, of which the first is 16 bytes behind its begin.
fn with_argument(body: &str) -> Fault {
    let machine = Machine::new(Gpu::h200());
    let module = machine.load(&kernel(body)).unwrap();
    let pointer = machine.allocate(96).unwrap();
    machine.fill(pointer, &[0], 95).unwrap();
    let y = Argument { name: "y", address: pointer + 16, elements: 10, element_bytes: 8 };
    let params: [&[u8]; 1] = [&(pointer + 16).to_le_bytes()];
    let launch = Launch { arguments: &[y], ..Launch::new([1; 3], [1, 1, 1], &params) };
    match machine.launch(&module.kernel("planted").unwrap(), &launch) {
        Err(LaunchError::Fault(fault)) => *fault,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_fault_names_the_argument_and_the_element() {
    for (body, element) in [
        ("ld.global.u32 %r1, [%rd2+88];", "element 11 of argument `y`, which has 10 elements: 2 after the last"),
        ("st.global.u32 [%rd2+-20], %r0;", "byte 4 of element -3 of argument `y`, which has 10 elements: 3 before the first"),
        ("ld.global.v2.u32 {%r1, %r2}, [%rd2+28];", "byte 4 of element 3 of argument `y`"),
        ("ld.global.u32 %r1, [%rd2+76];", "byte 7 of element 9 of argument `y`"),
        ("atom.global.add.u32 %r1, [%rd2+80], 1;", "element 10 of argument `y`, which has 10 elements: 1 after the last"),
    ] {
        let fault = with_argument(body);
        assert_eq!(fault.element().as_deref(), Some(element), "{fault}");
        assert!(fault.to_string().contains(&format!("\n  {element}\n")), "{fault}");
    }
    let shared = with_argument("mov.u32 %r1, tile;\nld.shared.u32 %r2, [%r1];\nst.global.u32 [%rd2], %r2;");
    assert_eq!(shared.element(), None, "shared memory belongs to no argument: {shared}");
}

/// Threads write a word each and read their neighbour's, across warps.
fn exchange(between: &str) -> String {
    format!(
        "shl.b32 %r1, %r0, 2; mov.u32 %r2, tile; add.u32 %r3, %r2, %r1;
        st.shared.u32 [%r3], %r0;
        {between}
        xor.b32 %r4, %r1, 128; add.u32 %r4, %r2, %r4;
        ld.shared.u32 %r5, [%r4];
        st.global.u32 [%rd2], %r5;"
    )
}

#[test]
fn missing_barrier() {
    let found = fault(&exchange("mov.u32 %r6, 0;"));
    assert!(matches!(found.kind, FaultKind::SharedRace { .. } | FaultKind::UninitialisedMemory { .. }), "{found}");
    assert_eq!(found.line, 5, "{found}");
    let words = fine(&exchange("bar.sync 0;"));
    assert_eq!((words[0], words[40]), (32, 8));
    // All data is there, and still nothing orders the threads.
    let initialised =
        format!("mov.u32 %r7, tile; mad.lo.u32 %r7, %r0, 4, %r7; st.shared.u32 [%r7], %r0; bar.sync 0;{}", exchange("mov.u32 %r6, 0;"));
    let found = fault(&initialised);
    assert!(matches!(found.kind, FaultKind::SharedRace { .. }), "{found}");
}

#[test]
fn missing_barrier_after_reading() {
    // The second round overwrites what others may still read.
    let again = |between: &str| format!("{}\n{between}\nst.shared.u32 [%r3], %r5;", exchange("bar.sync 0;"));
    let found = fault(&again("mov.u32 %r6, 0;"));
    assert!(matches!(found.kind, FaultKind::SharedRace { .. }), "{found}");
    fine(&again("bar.sync 0;"));
}

/// Copies 16 bytes asynchronously, and reads them.
fn copied(wait: &str) -> String {
    format!(
        "shl.b32 %r1, %r0, 4; mov.u32 %r2, tile; add.u32 %r3, %r2, %r1; and.b64 %rd3, %rd2, -16;
        cp.async.ca.shared.global [%r3], [%rd3], 16;
        cp.async.commit_group;
        {wait}
        ld.shared.u32 %r5, [%r3];
        bar.sync 0; st.global.u32 [%rd2], %r5;"
    )
}

#[test]
fn missing_async_wait() {
    let found = fault(&copied("mov.u32 %r6, 0;"));
    assert!(matches!(found.kind, FaultKind::PendingAsync { .. }), "{found}");
    assert_eq!(found.line, 5, "{found}");
    fine(&copied("cp.async.wait_group 0;\n"));
    // One group may still be in flight: too many.
    let found = fault(&copied("cp.async.wait_group 1;"));
    assert!(matches!(found.kind, FaultKind::PendingAsync { .. }), "{found}");
}

#[test]
fn wrong_shuffle_mask() {
    // The mask does not name the upper lanes, which execute it too.
    let found = fault("mov.u32 %r1, %r0;\nshfl.sync.bfly.b32 %r2, %r1, 1, 31, 0x0000ffff;");
    assert!(matches!(found.kind, FaultKind::MemberMask { mask: 0xffff, .. }), "{found}");
    assert_eq!((found.line, found.thread[0]), (2, 16));
    // The mask names lanes that never come.
    let half = |mask: &str| {
        format!(
            "and.b32 %r1, %r0, 31; setp.lt.u32 %p1, %r1, 16; @!%p1 bra DONE;
            shfl.sync.bfly.b32 %r2, %r1, 1, 31, {mask};
            st.global.u32 [%rd2], %r2;
            DONE:"
        )
    };
    let found = fault(&half("0xffffffff"));
    assert!(matches!(found.kind, FaultKind::MemberMask { mask: u32::MAX, .. }), "{found}");
    assert_eq!(found.line, 2);
    assert_eq!(fine(&half("0x0000ffff"))[..4], [1, 0, 3, 2]);
}

#[test]
fn lanes_on_both_sides_of_a_branch_meet_in_a_shuffle() {
    // Lanes wait for named lanes that take another way to the same instruction.
    let words = fine(
        "and.b32 %r1, %r0, 1; setp.eq.u32 %p1, %r1, 0; @%p1 bra EVEN;
        mov.u32 %r2, 100; bra.uni MEET;
        EVEN: mov.u32 %r2, 200;
        MEET: shfl.sync.bfly.b32 %r3, %r2, 1, 31, -1;
        st.global.u32 [%rd2], %r3;",
    );
    assert_eq!(words[..4], [100, 200, 100, 200]);
}

#[test]
fn shared_memory_that_nobody_wrote() {
    let found = fault("mov.u32 %r2, tile;\nld.shared.u32 %r5, [%r2+4];\nadd.u32 %r5, %r5, 1;\nst.global.u32 [%rd2], %r5;");
    assert!(matches!(found.kind, FaultKind::UninitialisedMemory { .. }), "{found}");
    assert_eq!(found.line, 2);
    let body = "mov.u32 %r2, tile;\nld.shared.u32 %r5, [%r2+4];\nst.global.u32 [%rd2], %r5;";
    assert!(run_with(body, Options { allow_uninitialised: true, ..Options::default() }).is_ok());
}

#[test]
fn register_that_nobody_wrote() {
    let found = fault("add.u32 %r1, %r0, 1;\nadd.u32 %r1, %r1, %r9;\nst.global.u32 [%rd2], %r1;");
    assert_eq!(found.kind, FaultKind::UninitialisedRegister { register: "%r9".to_owned() });
    assert_eq!(found.line, 2);
}

#[test]
fn misaligned_vector() {
    let found = fault("mov.f32 %f0, 0f00000000;\nand.b64 %rd3, %rd2, -16;\nst.global.v4.f32 [%rd3+-8], {%f0, %f0, %f0, %f0};");
    assert!(matches!(found.kind, FaultKind::Misaligned { alignment: 16, .. }), "{found}");
    assert_eq!(found.line, 3);
    fine("mov.f32 %f0, 0f00000000;\nand.b64 %rd3, %rd2, -16;\nst.global.v4.f32 [%rd3], {%f0, %f0, %f0, %f0};");
}

#[test]
fn divergent_barrier() {
    let found = fault("setp.lt.u32 %p1, %r0, 16;\n@!%p1 bra DONE;\nbar.sync 0;\nDONE:");
    assert!(matches!(found.kind, FaultKind::DivergentWarp { .. }), "{found}");
    assert_eq!(found.line, 3);
    // A whole warp may stay away if the barrier counts only the other.
    fine("setp.lt.u32 %p1, %r0, 32;\n@!%p1 bra DONE;\nbar.sync 0, 32;\nDONE:");
}

#[test]
fn barrier_that_half_of_the_threads_never_reach() {
    // The second warp waits at another barrier.
    let found = fault("setp.lt.u32 %p1, %r0, 32;\n@!%p1 bra OTHER;\nbar.sync 0;\nbra.uni DONE;\nOTHER: bar.sync 1;\nDONE:");
    let FaultKind::Deadlock { description } = &found.kind else { panic!("{found}") };
    assert!(description.contains("line 3") && description.contains("line 5"), "{description}");
}

#[test]
fn endless_loop() {
    let options = Options { max_instructions: 10_000, ..Options::default() };
    match run_with("AGAIN: mov.u32 %r1, 0;\nbra.uni AGAIN;", options) {
        Err(LaunchError::Fault(fault)) => assert!(matches!(fault.kind, FaultKind::TooLong { .. }), "{fault}"),
        other => panic!("{other:?}"),
    }
}

/// Writes a 32 x 32 tile of words by rows and reads it by columns; `swizzle` makes the column of a row (`%r6`) from row `%r4` and column `%r5`.
fn transposed(swizzle: &str, swizzle_back: &str) -> String {
    format!(
        "mov.u32 %r2, tile; and.b32 %r5, %r0, 31; shr.u32 %r1, %r0, 5; mov.u32 %r4, %r1;
        ROW: {swizzle} mad.lo.u32 %r7, %r4, 32, %r6; mad.lo.u32 %r7, %r7, 4, %r2; mad.lo.u32 %r8, %r4, 32, %r5; st.shared.u32 [%r7], %r8; add.u32 %r4, %r4, 2; setp.lt.u32 %p1, %r4, 32; @%p1 bra ROW;
        bar.sync 0;
        mov.u32 %r4, %r5; mov.u32 %r5, %r1;
        {swizzle_back} mad.lo.u32 %r7, %r4, 32, %r6; mad.lo.u32 %r7, %r7, 4, %r2;
        ld.shared.u32 %r9, [%r7];
        st.global.u32 [%rd2], %r9;"
    )
}

#[test]
fn wrong_swizzle() {
    let conflicts = |body: &str, line: u32| {
        let (counters, words) = run(body).unwrap_or_else(|error| panic!("{error}"));
        let found: u64 = counters.lines().filter(|(at, _)| at.line == line).map(|(_, counted)| counted.shared.bank_conflicts()).sum();
        (found, words)
    };
    let transposed_tile: Vec<u32> = (0..64).map(|thread| thread % 32 * 32 + thread / 32).collect();
    let right = "xor.b32 %r6, %r4, %r5;";
    // The right one has no bank conflict, and gives the transposed tile.
    assert_eq!(conflicts(&transposed(right, right), 6), (0, transposed_tile.clone()));
    // A swizzle that moves too little is right and slow: the report shows the line.
    let weak = "and.b32 %r6, %r4, 1; xor.b32 %r6, %r6, %r5;";
    assert_eq!(conflicts(&transposed(weak, weak), 6), (2 * 15, transposed_tile.clone()));
    // Another one on the way back reads other elements.
    assert_ne!(conflicts(&transposed(right, weak), 6).1, transposed_tile);
}
