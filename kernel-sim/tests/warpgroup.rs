//! Kernels of a Hopper GPU: tensor copies, mbarriers and warpgroup products together, against sums made here.

use kernel_sim::tensor_map::{ElementType, Fill, Interleave, Promotion, Swizzle, TensorMap};
use kernel_sim::{FaultKind, Gpu, Launch, LaunchError, Machine, Options};

/// Small whole numbers as `f16`: every product and sum of them is exact.
fn half(value: i32) -> u16 {
    if value == 0 {
        return 0;
    }
    let sign = if value < 0 { 0x8000 } else { 0 };
    let magnitude = value.unsigned_abs();
    let exponent = magnitude.ilog2();
    let fraction = (magnitude << (10 - exponent)) & 0x3ff;
    sign | ((exponent + 15) << 10 | fraction) as u16
}

fn left(row: usize, k: usize) -> i32 {
    (row * 7 + k * 3) as i32 % 11 - 5
}

fn right(column: usize, k: usize) -> i32 {
    (column * 5 + k * 2) as i32 % 13 - 6
}

/// A variant of the kernel. [`RIGHT`] is the correct one; each other one differs from it in one field.
#[derive(Clone, Copy)]
struct Variant {
    swizzle: Swizzle,
    /// The descriptor's mode, and bytes between groups of eight rows.
    mode: u64,
    stride: u64,
    wgmma_fence: &'static str,
    wait_for_bytes: bool,
    /// The instructions that threads execute on the tile before the products.
    touch: &'static str,
    wait_group: &'static str,
    bytes: u32,
}

const RIGHT: Variant = Variant {
    swizzle: Swizzle::Bytes128,
    mode: 1,
    stride: 1024,
    wgmma_fence: "wgmma.fence.sync.aligned;",
    wait_for_bytes: true,
    touch: "",
    wait_group: "wgmma.wait_group.sync.aligned 0;",
    bytes: 64 * 64 * 2 + 16 * 64 * 2,
};

/// 64 rows of A, 16 columns of B, 64 terms: four steps of 16 along K.
fn kernel(variant: &Variant) -> String {
    let Variant { mode, stride, touch, wgmma_fence, wait_group, bytes, .. } = variant;
    let constant = (mode << 62) | (stride >> 4) << 32 | 1 << 16;
    let step_bytes = if *mode == 0 { 256 } else { 32 };
    let products: String = (0..4)
        .map(|step| {
            format!(
                "add.s64 %rd6, %rd4, {offset};
                 add.s64 %rd7, %rd5, {offset};
                 setp.ne.b32 %p2, {step}, 0;
                 .loc 1 20 1
                 wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16 {{%f0,%f1,%f2,%f3,%f4,%f5,%f6,%f7}}, %rd6, %rd7, %p2, 1, 1, 0, 0;\n",
                offset = step * step_bytes / 16
            )
        })
        .collect();
    let stores: String = (0..8)
        .map(|element| {
            let (row, column) = (element / 2 % 2 * 8, element / 4 * 8 + element % 2);
            format!("st.global.f32 [%rd9+{}], %f{element};\n", (row * 16 + column) * 4)
        })
        .collect();
    let wait = if variant.wait_for_bytes { "again: mbarrier.try_wait.parity.shared::cta.b64 %p1, [bar], 0;\n@!%p1 bra again;" } else { "" };
    format!(
        ".version 8.0\n.target sm_90a\n.address_size 64\n.file 1 \"kernel.rs\"
        .visible .entry product(.param .align 64 .b8 a[128], .param .align 64 .b8 b[128], .param .u64 d) {{
            .reg .pred %p<4>; .reg .b32 %r<16>; .reg .b64 %rd<16>; .reg .f32 %f<8>;
            .shared .align 1024 .b8 tile[10240];
            .shared .align 8 .b64 bar;
            mov.u32 %r0, %tid.x;
            setp.ne.u32 %p0, %r0, 0;
            @%p0 bra issued;
            mbarrier.init.shared::cta.b64 [bar], 1;
            fence.proxy.async;
            mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], {bytes};
            mov.b64 %rd0, a;
            cvta.param.u64 %rd1, %rd0;
            mov.b64 %rd2, b;
            cvta.param.u64 %rd3, %rd2;
            mov.u32 %r1, tile;
            mov.u32 %r2, bar;
            .loc 1 10 1
            cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r1], [%rd1, {{0, 0}}], [%r2];
            cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r1+8192], [%rd3, {{0, 0}}], [%r2];
        issued:
            bar.sync 0;
            {wait}
            .loc 1 15 1
            {touch}
            mov.u32 %r3, tile;
            shr.u32 %r4, %r3, 4;
            cvt.u64.u32 %rd4, %r4;
            or.b64 %rd4, %rd4, {constant};
            add.s64 %rd5, %rd4, 512;
            {wgmma_fence}
            {products}
            wgmma.commit_group.sync.aligned;
            .loc 1 30 1
            {wait_group}
            ld.param.u64 %rd8, [d];
            cvta.to.global.u64 %rd8, %rd8;
            shr.u32 %r5, %r0, 5;
            shl.b32 %r5, %r5, 4;
            and.b32 %r6, %r0, 31;
            shr.u32 %r7, %r6, 2;
            add.u32 %r5, %r5, %r7;
            and.b32 %r6, %r6, 3;
            shl.b32 %r6, %r6, 1;
            mad.lo.u32 %r5, %r5, 16, %r6;
            mul.wide.u32 %rd9, %r5, 4;
            add.s64 %rd9, %rd8, %rd9;
            .loc 1 40 1
            {stores}
            ret;
        }}"
    )
}

fn run(variant: &Variant, seed: u64) -> Result<Vec<f32>, LaunchError> {
    let machine = Machine::new(Gpu::h200());
    let module = machine.load(&kernel(variant)).unwrap_or_else(|error| panic!("{error}"));
    let tensor_map = |rows: usize, value: &dyn Fn(usize, usize) -> i32| {
        let address = machine.allocate(rows * 128).unwrap();
        let bytes: Vec<u8> = (0..rows * 64).flat_map(|at| half(value(at / 64, at % 64)).to_le_bytes()).collect();
        machine.write(address, &bytes).unwrap();
        let map = TensorMap {
            element: ElementType::F16,
            global_address: address,
            extents: vec![64, rows as u64],
            strides: vec![128],
            box_extents: vec![64, rows as u32],
            element_strides: vec![1, 1],
            interleave: Interleave::None,
            swizzle: variant.swizzle,
            promotion: Promotion::None,
            fill: Fill::Zero,
        };
        map.encode().unwrap()
    };
    let (a, b) = (tensor_map(64, &left), tensor_map(16, &right));
    let d = machine.allocate(64 * 16 * 4).unwrap();
    let options = Options { seed, ..Options::default() };
    let launch = Launch { params: &[&a, &b, &d.to_le_bytes()], options, ..Launch::new([1; 3], [128, 1, 1], &[]) };
    machine.launch(&module.kernel("product").unwrap(), &launch)?;
    let mut bytes = vec![0; 64 * 16 * 4];
    machine.read(d, &mut bytes).unwrap();
    Ok(bytes.chunks(4).map(|word| f32::from_le_bytes(word.try_into().unwrap())).collect())
}

#[track_caller]
fn fault(variant: &Variant) -> (FaultKind, u32) {
    match run(variant, 0) {
        Err(LaunchError::Fault(fault)) => (fault.kind, fault.line),
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("nothing was found"),
    }
}

fn expected() -> Vec<f32> {
    let element = |row, column| (0..64).map(|k| left(row, k) * right(column, k)).sum::<i32>() as f32;
    (0..64).flat_map(|row| (0..16).map(move |column| element(row, column))).collect()
}

#[test]
fn a_product_of_swizzled_tiles_is_exact() {
    for seed in [0, 1, 2, 3] {
        assert_eq!(run(&RIGHT, seed).unwrap_or_else(|error| panic!("{error}")), expected());
    }
}

#[test]
fn a_wrong_swizzle_gives_a_wrong_product() {
    let unswizzled = Variant { swizzle: Swizzle::None, ..RIGHT };
    assert_ne!(run(&unswizzled, 0).unwrap_or_else(|error| panic!("{error}")), expected());
}

#[test]
fn a_product_before_its_bytes_arrive_is_found() {
    let (kind, line) = fault(&Variant { wait_for_bytes: false, ..RIGHT });
    assert!(matches!(kind, FaultKind::UninitialisedMemory { .. } | FaultKind::SharedRace { .. }), "{kind}");
    assert_eq!(line, 30);
}

#[test]
fn a_missing_fence_or_wait_is_found() {
    let (kind, line) = fault(&Variant { wgmma_fence: "", ..RIGHT });
    assert_eq!((kind.to_string().as_str(), line), ("there is no `wgmma.fence` before the first `wgmma.mma_async`", 20));
    let (kind, line) = fault(&Variant { wait_group: "", ..RIGHT });
    assert_eq!((kind.to_string().as_str(), line), ("register `%f0` belongs to a wgmma that was not waited for", 40));
}

#[test]
fn bytes_that_nobody_sends_are_waited_for_without_end() {
    let (kind, _) = fault(&Variant { bytes: RIGHT.bytes + 16, ..RIGHT });
    let FaultKind::Deadlock { description } = kind else { panic!("{kind}") };
    assert!(description.contains("phase 0 waits for 0 of 1 arrivals and 16 bytes"), "{description}");
}

#[test]
fn a_store_is_seen_by_a_product_after_a_proxy_fence_only() {
    // The first element of A is -5: its word is written once more.
    let fenced =
        Variant { touch: "@!%p0 ld.shared.b32 %r9, [tile];\n@!%p0 st.shared.b32 [tile], %r9;\nfence.proxy.async;\nbar.sync 0;", ..RIGHT };
    assert_eq!(run(&fenced, 0).unwrap_or_else(|error| panic!("{error}")), expected());
    let (kind, line) =
        fault(&Variant { touch: "@!%p0 ld.shared.b32 %r9, [tile];\n@!%p0 st.shared.b32 [tile], %r9;\nbar.sync 0;", ..RIGHT });
    let FaultKind::SharedRace { hint, other_line, .. } = kind else { panic!("{kind}") };
    assert_eq!((hint, other_line, line), (": `fence.proxy.async` is missing", 15, 30));
}

#[test]
fn registers_written_after_the_fence_are_found() {
    let late = Variant { wgmma_fence: "wgmma.fence.sync.aligned;\nmov.f32 %f3, 0f00000000;", ..RIGHT };
    let (kind, line) = fault(&late);
    assert_eq!((kind.to_string().as_str(), line), ("register `%f3` was written after the last `wgmma.fence`", 20));
}
