//! Runs a planted race under several orders of warps and on several numbers of cores, and its correct twin.

use kernel_sim::{Fault, FaultKind, Gpu, Launch, LaunchError, Machine, Options};

/// A kernel with a race: PTX in which `@@` is replaced by `wrong`, or by `right` if there is a correct twin (and `GIVE` by what stands there
/// behind `|`), and `INIT` by an mbarrier at `bar` that waits for 64 bytes. Line `n` of the PTX is line `n`
/// of `kernel.rs`. Before it, `%rd1` is a tensor of 1024 words (0, 1, ..), `%rd2` 64 words of 0, `%rd3` the word of the tensor with the
/// thread's number and `%rd4` that with the thread's number in the grid; `%r0` is the thread, `%r1` the CTA and `%r2` the other
/// warp's word of a tensor in bytes; `%p0` holds in thread 0, `%p1` in the first warp, `%p2` in CTA 0, and `%p3` in thread 0 of CTA 0.
pub(crate) struct Planted {
    pub(crate) name: &'static str,
    /// CTAs, threads of a CTA, CTAs of a cluster.
    pub(crate) launch: [u32; 3],
    pub(crate) ptx: &'static str,
    pub(crate) wrong: &'static str,
    pub(crate) right: Option<&'static str>,
    /// The lines of the two accesses, the smaller first.
    pub(crate) lines: [u32; 2],
}

/// A launch of one CTA of two warps.
pub(crate) const CTA: [u32; 3] = [1, 64, 1];
/// A launch of a cluster of two CTAs of one warp.
pub(crate) const CLUSTER: [u32; 3] = [2, 32, 2];
/// A launch of four programs of one warp.
pub(crate) const GRID: [u32; 3] = [4, 32, 1];

const SEEDS: [u64; 5] = [0, 1, 2, 3, 4];

fn module(planted: &Planted, text: &str) -> String {
    let (text, give) = text.split_once('|').unwrap_or((text, ""));
    let init = "mbarrier.init.shared::cta.b64 [bar], 1; fence.mbarrier_init.release.cluster; \
                mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 64;";
    let body = planted.ptx.replace("@@", text).replace("GIVE", give).replace("INIT", init);
    let lines: String = body.trim().lines().enumerate().map(|(line, text)| format!(".loc 1 {} 5\n{text}\n", line + 1)).collect();
    format!(
        ".version 8.6\n.target sm_90a\n.address_size 64\n.file 1 \"kernel.rs\"\n
        .visible .entry planted(.param .u64 data, .param .u64 flags) {{
            .reg .pred %p<12>; .reg .b32 %r<32>; .reg .b64 %rd<16>; .reg .b16 %h<4>;
            .shared .align 128 .b8 tile[4096];
            .shared .align 8 .b64 bar;
            ld.param.u64 %rd0, [data];
            cvta.to.global.u64 %rd1, %rd0;
            ld.param.u64 %rd0, [flags];
            cvta.to.global.u64 %rd2, %rd0;
            mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x; mov.u32 %r3, %ntid.x;
            mul.wide.u32 %rd3, %r0, 4; add.s64 %rd3, %rd1, %rd3;
            mad.lo.u32 %r3, %r1, %r3, %r0; mul.wide.u32 %rd4, %r3, 4; add.s64 %rd4, %rd1, %rd4;
            shl.b32 %r2, %r0, 2; xor.b32 %r2, %r2, 128; cvt.u64.u32 %rd5, %r2; add.s64 %rd5, %rd1, %rd5;
            shl.b32 %r4, %r0, 2; mov.u32 %r5, tile; add.u32 %r4, %r5, %r4; add.u32 %r2, %r5, %r2;
            setp.eq.u32 %p0, %r0, 0; setp.lt.u32 %p1, %r0, 32; setp.eq.u32 %p2, %r1, 0; and.pred %p3, %p0, %p2;
            {lines}
            ret;
        }}"
    )
}

fn run(ptx: &str, [ctas, threads, cluster]: [u32; 3], seed: u64, cores: usize, allow_races: bool) -> Result<(), LaunchError> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(cores).build().unwrap();
    pool.install(|| {
        let machine = Machine::new(Gpu::h200());
        let module = machine.load(ptx).unwrap_or_else(|error| panic!("{error}"));
        let data = machine.allocate(4096).unwrap();
        machine.write(data, &(0..1024u32).flat_map(u32::to_le_bytes).collect::<Vec<_>>()).unwrap();
        let flags = machine.allocate(256).unwrap();
        machine.fill(flags, &[0], 256).unwrap();
        let params: [&[u8]; 2] = [&data.to_le_bytes(), &flags.to_le_bytes()];
        let options = Options { seed, allow_races, max_instructions: 1_000_000, ..Options::default() };
        let cluster = (cluster > 1).then_some([cluster, 1, 1]);
        let launch = Launch { cluster, options, ..Launch::new([ctas, 1, 1], [threads, 1, 1], &params) };
        machine.launch(&module.kernel("planted").unwrap(), &launch).map(|_| ())
    })
}

/// The fault of a race, which is the same whatever the order and the number of cores.
pub(crate) fn found(planted: &Planted) -> Fault {
    let ptx = module(planted, planted.wrong);
    let mut first: Option<Fault> = None;
    for (seed, cores) in SEEDS.into_iter().flat_map(|seed| [(seed, 1), (seed, 4)]) {
        let fault = match run(&ptx, planted.launch, seed, cores, false) {
            Err(LaunchError::Fault(fault)) => *fault,
            Err(error) => panic!("{}: {error}", planted.name),
            Ok(()) => panic!("{}: nothing is found with seed {seed} on {cores} cores", planted.name),
        };
        match &first {
            None => first = Some(fault),
            Some(first) => assert_eq!(*first, fault, "{}: seed {seed} on {cores} cores: {fault}", planted.name),
        }
    }
    first.expect("there are seeds")
}

/// Checks that a race is found, with both lines, and that nothing is found in its correct twin.
pub(crate) fn check(planted: &Planted) {
    let fault = found(planted);
    let other = match &fault.kind {
        FaultKind::GlobalRace { other_line, .. } | FaultKind::SharedRace { other_line, .. } => *other_line,
        FaultKind::PendingAsync { issued_line, .. } => *issued_line,
        _ => panic!("{}: another fault: {fault}", planted.name),
    };
    let mut lines = [fault.line, other];
    lines.sort_unstable();
    assert_eq!(lines, planted.lines, "{}: {fault}", planted.name);
    let Some(right) = planted.right else { return };
    let ptx = module(planted, right);
    for seed in SEEDS {
        if let Err(error) = run(&ptx, planted.launch, seed, 2, false) {
            panic!("{}, the correct twin: seed {seed}: {error}", planted.name);
        }
    }
}

/// A race that is allowed is no fault.
pub(crate) fn is_allowed(planted: &Planted) -> bool {
    run(&module(planted, planted.wrong), planted.launch, 0, 2, true).is_ok()
}
