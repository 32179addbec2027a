//! Two runs with one seed are equal to the byte, on any number of cores; other seeds take other orders.

use kernel_sim::{Counters, Fault, Gpu, Launch, LaunchError, Machine, Options};

const HEADER: &str = ".version 8.0\n.target sm_90a\n.address_size 64\n";

/// Every thread adds a number of its own to one float: the sum depends on the order.
const ADD: &str = ".visible .entry add(.param .u64 sum) {
    .reg .b32 %r<8>; .reg .b64 %rd<4>; .reg .f32 %f<4>;
    ld.param.u64 %rd0, [sum]; cvta.to.global.u64 %rd1, %rd0;
    mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x; mad.lo.u32 %r2, %r1, 64, %r0;
    mul.lo.u32 %r2, %r2, 2654435761; cvt.rn.f32.u32 %f0, %r2; mul.f32 %f0, %f0, 0f2F800000;
    red.global.add.f32 [%rd1], %f0;
    ret;
}";

/// The last CTA to arrive lets all others go on: it needs every CTA to run beside the others.
const MEET: &str = ".visible .entry meet(.param .u64 counter) {
    .reg .pred %p; .reg .b32 %r<8>; .reg .b64 %rd<4>;
    ld.param.u64 %rd0, [counter]; cvta.to.global.u64 %rd1, %rd0;
    mov.u32 %r0, %tid.x; setp.ne.u32 %p, %r0, 0; @%p bra WAIT;
    atom.add.release.gpu.global.u32 %r1, [%rd1], 1;
    WAIT: mov.u32 %r2, %nctaid.x;
    AGAIN: ld.acquire.gpu.global.u32 %r3, [%rd1]; setp.lt.u32 %p, %r3, %r2; @%p bra AGAIN;
    ret;
}";

/// CTAs from the third on store outside of their memory.
const WRONG: &str = ".visible .entry wrong(.param .u64 x) {
    .reg .b32 %r<4>; .reg .b64 %rd<4>;
    ld.param.u64 %rd0, [x]; cvta.to.global.u64 %rd1, %rd0;
    mov.u32 %r0, %ctaid.x; mul.wide.u32 %rd2, %r0, 4; add.s64 %rd3, %rd1, %rd2;
    st.global.u32 [%rd3], %r0;
    ret;
}";

/// Runs a kernel on a zeroed buffer, on that many cores of the host.
fn run(ptx: &str, name: &str, ctas: u32, bytes: usize, seed: u64, cores: usize) -> Result<(Counters, Vec<u8>), LaunchError> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(cores).build().unwrap();
    pool.install(|| {
        let machine = Machine::new(Gpu::h200());
        let module = machine.load(&format!("{HEADER}{ptx}")).unwrap_or_else(|error| panic!("{error}"));
        let buffer = machine.allocate(bytes).unwrap();
        machine.fill(buffer, &[0], bytes).unwrap();
        let params: [&[u8]; 1] = [&buffer.to_le_bytes()];
        let options = Options { seed, max_instructions: 10_000_000, ..Options::default() };
        let counters =
            machine.launch(&module.kernel(name).unwrap(), &Launch { options, ..Launch::new([ctas, 1, 1], [64, 1, 1], &params) })?;
        let mut result = vec![0; bytes];
        machine.read(buffer, &mut result).unwrap();
        Ok((counters, result))
    })
}

#[test]
fn a_sum_of_floats_is_the_same_on_any_number_of_cores() {
    let sums: Vec<Vec<u8>> = [1, 4].map(|cores| run(ADD, "add", 300, 4, 0, cores).unwrap().1).to_vec();
    assert_eq!(sums[0], sums[1]);
    let others: Vec<Vec<u8>> = (1..6).map(|seed| run(ADD, "add", 300, 4, seed, 2).unwrap().1).collect();
    assert!(others.iter().any(|other| *other != sums[0]), "no seed takes another order");
    for (seed, other) in (1..6).zip(&others) {
        assert_eq!(run(ADD, "add", 300, 4, seed, 3).unwrap().1, *other);
    }
}

#[test]
fn ctas_that_wait_for_each_other_run_side_by_side() {
    for seed in 0..3 {
        let (_, counter) = run(MEET, "meet", 100, 4, seed, 2).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        assert_eq!(counter, 100u32.to_le_bytes());
    }
}

#[test]
fn the_first_fault_is_that_of_the_first_cta() {
    for cores in [1, 4] {
        match run(WRONG, "wrong", 500, 12, 0, cores) {
            Err(LaunchError::Fault(fault)) => {
                let Fault { cta, thread, .. } = *fault;
                assert_eq!((cta, thread), ([3, 0, 0], [0; 3]));
            }
            other => panic!("{other:?}"),
        }
    }
}
