//! Loops that nothing will ever end are faults that say who waits for what, soon and in every order of the warps; loops that take long, or that another program ends
//! late, are none.

use std::time::{Duration, Instant};

use kernel_sim::{Argument, Fault, FaultKind, Gpu, Launch, LaunchError, Machine, Options};

/// A kernel of `grid` programs with 64 threads over 8 words, `flags`, that hold these numbers: `body` stands behind `%rd1` = the pointer, `%r0` = the thread,
/// `%r1` = the program, and `%rd2` = the address of the program's own word. Line `n` of the body is line `n` of `kernel.rs`.
fn run(body: &str, grid: u32, flags: [u32; 8], seed: u64) -> Result<[u32; 8], LaunchError> {
    run_clusters(body, (grid, 1), flags, seed)
}

/// The same in clusters of so many programs.
fn run_clusters(body: &str, (grid, cluster): (u32, u32), flags: [u32; 8], seed: u64) -> Result<[u32; 8], LaunchError> {
    let lines: String = body.trim().lines().enumerate().map(|(line, text)| format!(".loc 1 {} 5\n{text}\n", line + 1)).collect();
    let ptx = format!(
        ".version 8.0\n.target sm_90a\n.address_size 64\n.file 1 \"kernel.rs\"\n
        .visible .entry waits(.param .u64 pointer) {{
            .reg .pred %p<8>; .reg .b32 %r<16>; .reg .b64 %rd<16>;
            .shared .align 128 .b8 tile[1024];
            ld.param.u64 %rd0, [pointer];
            cvta.to.global.u64 %rd1, %rd0;
            mov.u32 %r0, %tid.x;
            mov.u32 %r1, %ctaid.x;
            and.b32 %r2, %r1, 7;
            mul.wide.u32 %rd2, %r2, 4;
            add.s64 %rd2, %rd1, %rd2;
            {lines}
            ret;
        }}"
    );
    let machine = Machine::new(Gpu::h200());
    let module = machine.load(&ptx).unwrap_or_else(|error| panic!("{error}"));
    let pointer = machine.allocate(32).unwrap();
    machine.write(pointer, flags.map(u32::to_le_bytes).as_flattened()).unwrap();
    let params: [&[u8]; 1] = [&pointer.to_le_bytes()];
    let arguments = [Argument { name: "flags", address: pointer, elements: 8, element_bytes: 4 }];
    let options = Options { seed, ..Options::default() };
    let cluster = (cluster > 1).then_some([cluster, 1, 1]);
    let launch = Launch { arguments: &arguments, cluster, options, ..Launch::new([grid, 1, 1], [64, 1, 1], &params) };
    machine.launch(&module.kernel("waits").unwrap(), &launch)?;
    let mut bytes = [0; 32];
    machine.read(pointer, &mut bytes).unwrap();
    Ok(std::array::from_fn(|index| u32::from_le_bytes(bytes[4 * index..][..4].try_into().unwrap())))
}

/// Runs a kernel that never ends under four seeds, and returns the deadlock fault of the first one.
#[track_caller]
fn never(body: &str, grid: u32, flags: [u32; 8]) -> Fault {
    let mut first = None;
    for seed in [0, 1, 2, 3] {
        let start = Instant::now();
        let fault = match run(body, grid, flags, seed) {
            Err(LaunchError::Fault(fault)) => *fault,
            other => panic!("seed {seed}: {other:?}"),
        };
        assert!(start.elapsed() < Duration::from_secs(5), "{:?}: {fault}", start.elapsed());
        assert!(matches!(fault.kind, FaultKind::Deadlock { .. }), "seed {seed}: {fault}");
        first.get_or_insert(fault);
    }
    first.unwrap()
}

#[track_caller]
fn description(fault: &Fault) -> &str {
    match &fault.kind {
        FaultKind::Deadlock { description } => description,
        other => panic!("{other}"),
    }
}

#[track_caller]
fn ends(body: &str, grid: u32, flags: [u32; 8]) -> [u32; 8] {
    let results = [0, 1, 2, 3].map(|seed| run(body, grid, flags, seed).unwrap_or_else(|error| panic!("seed {seed}: {error}")));
    results[0]
}

/// Each thread takes the lock at `flags[5]`.
const LOCK: &str = "SPIN:\natom.global.cas.b32 %r3, [%rd1+20], 0, 1;\nsetp.eq.u32 %p1, %r3, 1;\n@%p1 bra SPIN;";

#[test]
fn a_lock_that_nobody_frees() {
    let fault = never(LOCK, 1, [1; 8]);
    assert_eq!((fault.line, fault.cta), (2, [0; 3]), "{fault}");
    let expected = "program [0, 0, 0] asks again and again at line 2, `atom.global.cas.b32 %r3, [%rd1+20], 0, 1;`, for element 5 of argument `flags`, \
                    which stays 1 (2 warps)";
    assert_eq!(description(&fault), expected);
    // The first thread gets it, and keeps it.
    let fault = never(LOCK, 300, [0; 8]);
    assert!(description(&fault).starts_with("each of the 300 programs from [0, 0, 0] to [299, 0, 0] asks again and again"), "{fault}");
}

#[test]
fn two_programs_that_wait_for_each_other() {
    let body = "xor.b32 %r3, %r1, 1;\nmul.wide.u32 %rd3, %r3, 4;\nadd.s64 %rd3, %rd1, %rd3;\nSPIN:\nld.volatile.global.u32 %r4, [%rd3];
        setp.eq.u32 %p1, %r4, 0;\n@%p1 bra SPIN;\nst.volatile.global.u32 [%rd2], 1;";
    let fault = never(body, 2, [0; 8]);
    let text = description(&fault);
    for (program, element) in [(0, 1), (1, 0)] {
        let part = format!(
            "program [{program}, 0, 0] asks again and again at line 5, `ld.volatile.global.u32 %r4, [%rd3];`, for element {element} of argument `flags`, which stays 0 (2 warps)"
        );
        assert!(text.contains(&part), "{fault}");
    }
    // If one of them need not wait, both end.
    assert_eq!(ends(body, 2, [0, 1, 0, 0, 0, 0, 0, 0])[..2], [1, 1]);
}

/// One thread asks and tells the others through shared memory, as a compiler has it: barriers complete, and stores store what is there.
#[test]
fn a_program_that_shares_what_one_thread_sees() {
    let body = "SPIN:\nsetp.eq.u32 %p1, %r0, 0;\nmov.u32 %r5, tile;\n@%p1 ld.acquire.gpu.global.u32 %r3, [%rd2];\n@%p1 st.shared.u32 [%r5], %r3;\nbar.sync 0;
        ld.shared.u32 %r4, [%r5];\nbar.sync 0;\nsetp.ne.u32 %p2, %r4, 7;\n@%p2 bra SPIN;";
    let fault = never(body, 3, [7, 0, 3, 0, 0, 0, 0, 0]);
    assert_eq!((fault.line, fault.cta, fault.thread), (4, [1, 0, 0], [0; 3]), "{fault}");
    assert!(description(&fault).contains("for element 2 of argument `flags`, which stays 3 (2 warps)"), "{fault}");
    ends(body, 3, [7; 8]);
}

/// The same over the programs of a cluster: one of them tells both.
#[test]
fn a_cluster_that_shares_what_one_thread_sees() {
    let body =
        "mov.u32 %r5, tile;\nmov.u32 %r6, %cluster_ctarank;\nmapa.shared::cluster.u32 %r7, %r5, 0;\nmapa.shared::cluster.u32 %r8, %r5, 1;
        or.b32 %r9, %r6, %r0;\nsetp.eq.u32 %p1, %r9, 0;\nSPIN:\n@%p1 ld.acquire.gpu.global.u32 %r3, [%rd1+8];
        @%p1 st.shared::cluster.u32 [%r7], %r3;\n@%p1 st.shared::cluster.u32 [%r8], %r3;
        barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\nld.shared.u32 %r4, [%r5];
        barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\nsetp.ne.u32 %p2, %r4, 7;\n@%p2 bra SPIN;";
    for seed in [0, 1, 2] {
        let start = Instant::now();
        let Err(LaunchError::Fault(fault)) = run_clusters(body, (4, 2), [0; 8], seed) else { panic!("seed {seed}: it ended") };
        assert!(start.elapsed() < Duration::from_secs(5), "{:?}: {fault}", start.elapsed());
        assert!(
            description(&fault).contains("at line 8") && description(&fault).contains("element 2 of argument `flags`, which stays 0"),
            "{fault}"
        );
        run_clusters(body, (4, 2), [7; 8], seed).unwrap();
    }
}

#[test]
fn plain_loads_and_loops_without_any_access() {
    let fault = never("SPIN:\nld.global.u32 %r3, [%rd2];\nsetp.eq.u32 %p1, %r3, 0;\n@%p1 bra SPIN;", 1, [0; 8]);
    assert!(
        description(&fault).contains("line 2, `ld.global.u32 %r3, [%rd2];`, for element 0 of argument `flags`, which stays 0"),
        "{fault}"
    );
    let fault = never("SPIN:\nbra.uni SPIN;", 5, [0; 8]);
    assert_eq!(description(&fault), "program [0, 0, 0] repeats line 2, `bra.uni SPIN;`, and nothing changes (2 warps)");
}

#[test]
fn attempts_that_are_counted_and_pauses_change_nothing() {
    let counted =
        "mov.u32 %r5, 0;\nSPIN:\nadd.u32 %r5, %r5, 1;\nnanosleep.u32 20;\natom.global.cas.b32 %r3, [%rd1], 0, 1;\nsetp.eq.u32 %p1, %r3, 1;
        @%p1 bra SPIN;\nst.global.u32 [%rd2], %r5;";
    assert!(description(&never(counted, 2, [1; 8])).contains("at line 5"));
    // An inner loop that waits a little longer each time, up to a bound.
    let backoff = "mov.u32 %r5, 1;\nSPIN:\nmov.u32 %r6, 0;\nPAUSE:\nadd.u32 %r6, %r6, 1;\nsetp.lt.u32 %p2, %r6, %r5;\n@%p2 bra PAUSE;
        shl.b32 %r5, %r5, 1;\nmin.u32 %r5, %r5, 512;\natom.global.cas.b32 %r3, [%rd1], 0, 1;\nsetp.eq.u32 %p1, %r3, 1;\n@%p1 bra SPIN;";
    assert!(description(&never(backoff, 2, [1; 8])).contains("at line 10"));
}

#[test]
fn a_warp_at_a_barrier_that_the_other_never_reaches() {
    let body =
        "setp.lt.u32 %p1, %r0, 32;\n@%p1 bra WAIT;\nSPIN:\nld.volatile.global.u32 %r3, [%rd2];\nsetp.eq.u32 %p2, %r3, 0;\n@%p2 bra SPIN;
        WAIT:\nbar.sync 0;";
    let fault = never(body, 1, [0; 8]);
    let text = description(&fault);
    assert!(text.contains("at line 4") && text.contains("program [0, 0, 0] waits at line 8, `bar.sync 0;` (1 warp)"), "{fault}");
}

/// Each lane takes a lock inside of the loop, and frees it there or keeps it.
#[test]
fn lanes_of_a_warp_wait_for_each_other() {
    let body = |free: &str| {
        format!(
            "SPIN:\natom.global.cas.b32 %r3, [%rd1], 0, 1;\nsetp.eq.u32 %p1, %r3, 1;\n@%p1 bra AGAIN;\nld.volatile.global.u32 %r4, [%rd1+4];
            add.u32 %r4, %r4, 1;\nst.volatile.global.u32 [%rd1+4], %r4;\n{free}\nAGAIN:\n@%p1 bra SPIN;"
        )
    };
    assert_eq!(ends(&body("atom.global.exch.b32 %r5, [%rd1], 0;"), 2, [0; 8])[..2], [0, 128]);
    let fault = never(&body(""), 1, [0; 8]);
    assert!(description(&fault).contains("at line 2"), "{fault}");
}

/// 2,000,000 instructions in which no memory changes.
#[test]
fn a_long_loop_is_no_standstill() {
    let body = "mov.u32 %r5, 0;\nmov.u32 %r6, 1;\nLOOP:\nld.global.u32 %r3, [%rd1];\nmad.lo.u32 %r6, %r6, 5, %r3;\nadd.u32 %r5, %r5, 1;
        setp.lt.u32 %p1, %r5, 200000;\n@%p1 bra LOOP;\nsetp.eq.u32 %p2, %r0, 0;\n@%p2 st.global.u32 [%rd2+4], %r6;";
    let expected = (0..200_000).fold(1u32, |acc, _| acc.wrapping_mul(5).wrapping_add(3));
    assert_eq!(run(body, 1, [3; 8], 0).unwrap()[1], expected);
}

/// A loop that asks for a flag, and gives up after 100,000 attempts; one that looks at the clock; and one whose flag another program sets late.
#[test]
fn loops_that_end_by_themselves_or_late() {
    let attempts = "mov.u32 %r5, 0;\nSPIN:\nadd.u32 %r5, %r5, 1;\nld.volatile.global.u32 %r3, [%rd1];\nsetp.eq.u32 %p1, %r3, 0;
        setp.lt.and.u32 %p1, %r5, 100000, %p1;\n@%p1 bra SPIN;\nst.volatile.global.u32 [%rd2+4], %r5;";
    assert_eq!(run(attempts, 1, [0; 8], 0).unwrap()[1], 100_000);
    let clock = "mov.u64 %rd4, %clock64;\nSPIN:\nld.volatile.global.u32 %r3, [%rd1];\nmov.u64 %rd5, %clock64;\nsub.u64 %rd5, %rd5, %rd4;\nshr.u64 %rd5, %rd5, 14;
        setp.eq.u64 %p1, %rd5, 0;\n@%p1 bra SPIN;";
    ends(clock, 2, [0; 8]);
    let late = "setp.ne.u32 %p1, %r1, 3;\n@%p1 bra SPIN;\nmov.u32 %r5, 0;\nLONG:\nadd.u32 %r5, %r5, 1;\nsetp.lt.u32 %p2, %r5, 100000;\n@%p2 bra LONG;
        st.volatile.global.u32 [%rd1], 1;\nSPIN:\nld.volatile.global.u32 %r3, [%rd1];\nsetp.eq.u32 %p1, %r3, 0;\n@%p1 bra SPIN;";
    ends(late, 8, [0; 8]);
}

/// A copy in flight is what the loop waits for.
#[test]
fn an_asynchronous_copy_ends_a_loop() {
    let body = "mov.u32 %r5, tile;\nsetp.ne.u32 %p1, %r0, 0;\n@%p1 bra DONE;\nmbarrier.init.shared.b64 [%r5], 1;\nfence.proxy.async;
        mbarrier.arrive.expect_tx.shared.b64 %rd5, [%r5], 16;
        cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r5+16], [%rd1], 16, [%r5];
        SPIN:\nmbarrier.try_wait.shared.b64 %p2, [%r5], %rd5;\n@!%p2 bra SPIN;\nld.shared.u32 %r6, [%r5+20];\nst.global.u32 [%rd1], %r6;\nDONE:";
    assert_eq!(ends(body, 1, [4, 9, 0, 0, 0, 0, 0, 0])[0], 9);
}
