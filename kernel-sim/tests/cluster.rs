//! Clusters: a copy to several programs at once, and arrivals at the mbarriers of others.

use kernel_sim::{Gpu, Launch, Machine, Options};

/// Two programs: rank 0 sends 32 words to both, and each adds its rank to what it received. Rank 1 says through an mbarrier of rank 0
/// that it is ready.
const KERNEL: &str = "
.version 8.0
.target sm_90a
.address_size 64
.visible .entry both(.param .u64 source, .param .u64 target) {
    .reg .pred %p<4>; .reg .b16 %rs<2>; .reg .b32 %r<16>; .reg .b64 %rd<8>;
    .shared .align 128 .b8 tile[128];
    .shared .align 8 .b64 bar;
    .shared .align 8 .b64 ready;
    mov.u32 %r0, %tid.x;
    mov.u32 %r1, %cluster_ctarank;
    setp.eq.u32 %p0, %r0, 0;
    @%p0 mbarrier.init.shared::cta.b64 [bar], 1;
    @%p0 mbarrier.init.shared::cta.b64 [ready], 2;
    @%p0 fence.mbarrier_init.release.cluster;
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
    @%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 128;
    mov.u32 %r2, ready;
    mapa.shared::cluster.u32 %r3, %r2, 0;
    @%p0 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r3];
    setp.eq.u32 %p1, %r1, 0;
    and.pred %p1, %p1, %p0;
    @!%p1 bra sent;
wait_ready:
    mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p2, [ready], 0;
    @!%p2 bra wait_ready;
    ld.param.u64 %rd0, [source];
    mov.u16 %rs0, 3;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [tile], [%rd0], 128, [bar], %rs0;
sent:
    bar.warp.sync 0xffffffff;
wait_bytes:
    mbarrier.try_wait.parity.shared::cta.b64 %p2, [bar], 0;
    @!%p2 bra wait_bytes;
    shl.b32 %r4, %r0, 2;
    mov.u32 %r5, tile;
    add.u32 %r5, %r5, %r4;
    ld.shared.u32 %r6, [%r5];
    add.u32 %r6, %r6, %r1;
    ld.param.u64 %rd1, [target];
    mad.lo.u32 %r7, %r1, 32, %r0;
    mul.wide.u32 %rd2, %r7, 4;
    add.s64 %rd1, %rd1, %rd2;
    st.global.u32 [%rd1], %r6;
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
    ret;
}";

#[test]
fn a_multicast_reaches_every_program_of_the_mask() {
    for seed in [0, 1, 2] {
        let machine = Machine::new(Gpu::h200());
        let module = machine.load(KERNEL).unwrap_or_else(|error| panic!("{error}"));
        let source = machine.allocate(128).unwrap();
        machine.write(source, &(100..132u32).flat_map(u32::to_le_bytes).collect::<Vec<_>>()).unwrap();
        let target = machine.allocate(256).unwrap();
        let params: [&[u8]; 2] = [&source.to_le_bytes(), &target.to_le_bytes()];
        let options = Options { seed, ..Options::default() };
        let launch = Launch { cluster: Some([2, 1, 1]), params: &params, options, ..Launch::new([2, 1, 1], [32, 1, 1], &[]) };
        machine.launch(&module.kernel("both").unwrap(), &launch).unwrap_or_else(|error| panic!("{error}"));
        let mut bytes = vec![0; 256];
        machine.read(target, &mut bytes).unwrap();
        let words: Vec<u32> = bytes.chunks(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect();
        assert_eq!(words, (100..132).chain(101..133).collect::<Vec<_>>());
    }
}
