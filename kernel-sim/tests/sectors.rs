//! The sectors that a launch touches, against a count by hand, and launches of which only a part runs.

use std::collections::{HashMap, HashSet};

use kernel_sim::{Gpu, Launch, Machine, Options};

/// `y[i] = x[stride * i]`, of 4 bytes, for 64 threads of a CTA.
const STRIDED: &str = "
.version 7.0
.target sm_80
.address_size 64
.visible .entry strided(.param .u64 x, .param .u64 y, .param .u64 stride) {
    .reg .b32 %r<6>;
    .reg .b64 %rd<10>;
    ld.param.u64 %rd0, [x];
    ld.param.u64 %rd1, [y];
    ld.param.u64 %rd2, [stride];
    mov.u32 %r0, %tid.x;
    mov.u32 %r1, %ctaid.x;
    mad.lo.u32 %r2, %r1, 64, %r0;
    cvt.u64.u32 %rd3, %r2;
    mul.lo.u64 %rd4, %rd3, %rd2;
    shl.b64 %rd4, %rd4, 2;
    add.s64 %rd5, %rd0, %rd4;
    shl.b64 %rd6, %rd3, 2;
    add.s64 %rd7, %rd1, %rd6;
    .loc 1 7 1
    ld.global.u32 %r3, [%rd5];
    .loc 1 8 1
    st.global.u32 [%rd7], %r3;
    ret;
}
.file 1 \"strided.rs\"
";

const CTAS: u64 = 10;

/// By line: the sectors that one launch touches, and the CTAs that ran, as the elements of `y` that were written show.
fn run(stride: u64, most_clusters: Option<u64>) -> ([HashSet<u64>; 2], Vec<u64>, u64) {
    let machine = Machine::new(Gpu::h200());
    let kernel = machine.load(STRIDED).unwrap().kernel("strided").unwrap();
    let x = machine.allocate((4 * 64 * CTAS * stride) as usize).unwrap();
    let y = machine.allocate((4 * 64 * CTAS) as usize).unwrap();
    machine.fill(x, &7u32.to_le_bytes(), (64 * CTAS * stride) as usize).unwrap();
    machine.fill(y, &[0; 4], (64 * CTAS) as usize).unwrap();
    let params = [x, y, stride].map(u64::to_le_bytes);
    let params: Vec<&[u8]> = params.iter().map(|param| param.as_slice()).collect();
    let options = Options { count_sectors: true, most_clusters, ..Options::default() };
    let counters = machine.launch(&kernel, &Launch { options, ..Launch::new([CTAS as u32, 1, 1], [64, 1, 1], &params) }).unwrap();
    let mut written = vec![0; (4 * 64 * CTAS) as usize];
    machine.read(y, &mut written).unwrap();
    let ctas = (0..CTAS).filter(|cta| written[(4 * 64 * cta) as usize] == 7).collect();
    let of = |line: u32| counters.sectors().find(|(at, _)| at.line == line).unwrap().1;
    let relative = |sectors: &HashMap<u64, u32>, base: u64| sectors.keys().map(|sector| sector - base / 32).collect();
    // The CTAs read different elements, so they share at most the sectors at the ends of their parts.
    let (by_clusters, once) = (counters.sectors_read_by_clusters(), of(7).loaded.len() as u64);
    assert!((once..once + CTAS).contains(&by_clusters), "{by_clusters} and {once}");
    assert!(of(7).stored.is_empty() && of(8).loaded.is_empty());
    let bytes = |sectors: &HashMap<u64, u32>| sectors.values().map(|bytes| u64::from(bytes.count_ones())).sum::<u64>();
    assert_eq!((bytes(&of(7).loaded), bytes(&of(8).stored)), (4 * 64 * options.clusters_run(CTAS), 4 * 64 * options.clusters_run(CTAS)));
    let requests = counters.total().global.requests;
    ([relative(&of(7).loaded, x), relative(&of(8).stored, y)], ctas, requests)
}

#[test]
fn each_sector_is_counted_once() {
    for stride in [1, 2, 3, 8, 33] {
        let by_hand = |stride: u64| (0..64 * CTAS).map(|i| 4 * stride * i / 32).collect::<HashSet<u64>>();
        let (sectors, ctas, _) = run(stride, None);
        assert_eq!(sectors, [by_hand(stride), by_hand(1)], "stride {stride}");
        assert_eq!(ctas, (0..CTAS).collect::<Vec<_>>());
    }
}

#[test]
fn a_part_of_a_launch_has_its_first_and_its_last_cta() {
    for (most, expected) in [(1, vec![0]), (2, vec![0, 9]), (4, vec![0, 3, 5, 9]), (10, (0..10).collect()), (99, (0..10).collect())] {
        let (_, ctas, requests) = run(1, Some(most));
        assert_eq!(ctas, expected);
        assert_eq!(requests, 4 * expected.len() as u64);
    }
}
