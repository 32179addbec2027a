//! A hand-written kernel with a persistent entry: `out = x`, of a matrix whose rows lie `stride` elements apart in `x`. Each program copies a block of 8 rows.
//! `count` tells the entries apart: the usual one adds 1 to its first element in each CTA, the persistent one to its second. The persistent entry copies blocks
//! to shared memory by a tensor map.

#![allow(dead_code, reason = "each program of tests uses some of these")]

use kernel_runtime::prelude::*;
use kernel_runtime::private::{Args, Kernel, Launch, Param, ParamKind, PtrArg, PtrMutArg, Schedule, Variant};

/// The module, whose persistent entry takes so many bytes of shared memory. It has two warps, of which each lane copies a column.
macro_rules! ptx {
    ($shared_bytes:literal) => {
        concat!(
            r"
.version 8.0
.target sm_90a
.address_size 64

.extern .shared .align 1024 .b8 shared[];

// launch values:
// kernel @launch_values(%x: ptr<f32>, %out: ptr_mut<f32>, %count: ptr_mut<u32>, %rows: i64, %columns: i64, %stride: i64) {
//     %1 = launch_value () {
//         %0 = const {value = 8} : i64
//         yield %0
//     } : i64
//     return
// }

.visible .entry copy_blocks(
    .param .u64 x, .param .u64 x_len, .param .u64 out, .param .u64 out_len, .param .u64 count, .param .u64 count_len,
    .param .u64 rows, .param .u64 columns, .param .u64 stride, .param .u64 launch_0
)
.reqntid 32, 1, 1
{
    .reg .pred %p<3>;
    .reg .b32 %r<4>;
    .reg .b64 %rd<16>;
    .reg .f32 %f0;
    mov.u32 %r0, %tid.x;
    mov.u32 %r1, %ctaid.x;
    ld.param.u64 %rd0, [count];
    setp.eq.u32 %p0, %r0, 0;
    @%p0 red.global.add.u32 [%rd0], 1;
    cvt.u64.u32 %rd1, %r0;
    ld.param.u64 %rd2, [columns];
    setp.ge.u64 %p0, %rd1, %rd2;
    @%p0 ret;
    cvt.u64.u32 %rd3, %r1;
    ld.param.u64 %rd4, [launch_0];
    mul.lo.u64 %rd3, %rd3, %rd4;
    add.u64 %rd4, %rd3, %rd4;
    ld.param.u64 %rd5, [rows];
    min.u64 %rd4, %rd4, %rd5;
    ld.param.u64 %rd6, [x];
    ld.param.u64 %rd7, [out];
    ld.param.u64 %rd8, [stride];
row:
    setp.ge.u64 %p1, %rd3, %rd4;
    @%p1 ret;
    mad.lo.u64 %rd9, %rd3, %rd8, %rd1;
    shl.b64 %rd9, %rd9, 2;
    add.u64 %rd9, %rd6, %rd9;
    ld.global.f32 %f0, [%rd9];
    mad.lo.u64 %rd10, %rd3, %rd2, %rd1;
    shl.b64 %rd10, %rd10, 2;
    add.u64 %rd10, %rd7, %rd10;
    st.global.f32 [%rd10], %f0;
    add.u64 %rd3, %rd3, 1;
    bra row;
}

// persistent entry: copy_blocks_persistent
// 64 threads and ",
            $shared_bytes,
            r" bytes of shared memory a CTA, 1 CTAs a multiprocessor
// map_0: f32, box [32, 8], swizzle 128, address launch_2, extents [launch_3, launch_4], strides [launch_5]
// launch values:
// kernel @launch_values(%x: ptr<f32>, %out: ptr_mut<f32>, %count: ptr_mut<u32>, %rows: i64, %columns: i64, %stride: i64) {
//     %20, %21, %22, %23, %24, %25 = launch_value () {
//         %0 = address %x : i64
//         %1 = const {value = 15} : i64
//         %2 = and %0, %1 : i64
//         %3 = const {value = 0} : i64
//         %4 = eq %2, %3 : bool
//         %5 = const {value = 3} : i64
//         %6 = and %stride, %5 : i64
//         %7 = eq %6, %3 : bool
//         %8 = and %4, %7 : bool
//         %9 = num_programs : i64
//         yield %8, %9, %0, %columns, %rows, %stride
//     } : bool, i64, i64, i64, i64, i64
//     return
// }

.visible .entry copy_blocks_persistent(
    .param .u64 x, .param .u64 x_len, .param .u64 out, .param .u64 out_len, .param .u64 count, .param .u64 count_len,
    .param .u64 rows, .param .u64 columns, .param .u64 stride,
    .param .u32 launch_0, .param .u64 launch_1, .param .u64 launch_2, .param .u64 launch_3, .param .u64 launch_4, .param .u64 launch_5,
    .param .align 64 .b8 map_0[128]
)
.reqntid 64, 1, 1
.maxnreg 64
{
    .reg .pred %p<5>;
    .reg .b32 %r<20>;
    .reg .b64 %rd<16>;
    .reg .f32 %f0;
    mov.u32 %r0, %tid.x;
    mov.u32 %r1, %ctaid.x;
    mov.u32 %r2, %nctaid.x;
    mov.u32 %r3, shared;
    add.u32 %r4, %r3, 1024;
    setp.eq.u32 %p0, %r0, 0;
    ld.param.u64 %rd0, [count];
    @%p0 red.global.add.u32 [%rd0+4], 1;
    @%p0 mbarrier.init.shared::cta.b64 [%r4], 1;
    @%p0 fence.mbarrier_init.release.cluster;
    bar.sync 0;
    mov.b64 %rd1, map_0;
    cvta.param.u64 %rd1, %rd1;
    ld.param.u64 %rd2, [launch_1];
    cvt.u32.u64 %r5, %rd2;
    ld.param.u64 %rd3, [rows];
    ld.param.u64 %rd4, [columns];
    ld.param.u64 %rd5, [out];
    and.b32 %r6, %r0, 31;
    cvt.u64.u32 %rd6, %r6;
    setp.lt.u64 %p4, %rd6, %rd4;
    shr.u32 %r7, %r0, 5;
    mov.u32 %r8, 0;
program:
    setp.ge.u32 %p1, %r1, %r5;
    @%p1 ret;
    shl.b32 %r9, %r1, 3;
    @!%p0 bra wait;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r4], 1024;
    cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r3], [%rd1, {0, %r9}], [%r4];
wait:
    mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r4], %r8;
    @!%p2 bra wait;
    xor.b32 %r8, %r8, 1;
    mov.u32 %r10, %r7;
row:
    shl.b32 %r11, %r10, 7;
    shr.u32 %r12, %r6, 2;
    xor.b32 %r12, %r12, %r10;
    shl.b32 %r12, %r12, 4;
    and.b32 %r13, %r6, 3;
    shl.b32 %r13, %r13, 2;
    add.u32 %r11, %r11, %r12;
    add.u32 %r11, %r11, %r13;
    add.u32 %r11, %r11, %r3;
    ld.shared.f32 %f0, [%r11];
    add.u32 %r14, %r9, %r10;
    cvt.u64.u32 %rd7, %r14;
    mad.lo.u64 %rd8, %rd7, %rd4, %rd6;
    shl.b64 %rd8, %rd8, 2;
    add.u64 %rd8, %rd5, %rd8;
    setp.lt.and.u64 %p3, %rd7, %rd3, %p4;
    @%p3 st.global.f32 [%rd8], %f0;
    add.u32 %r10, %r10, 2;
    setp.lt.u32 %p3, %r10, 8;
    @%p3 bra row;
    fence.proxy.async.shared::cta;
    bar.sync 0;
    add.u32 %r1, %r1, %r2;
    bra program;
}
"
        )
    };
}

/// The rows of a block.
pub(crate) const ROWS: usize = 8;
/// The most columns: those of the box of the tensor map.
pub(crate) const COLUMNS: usize = 32;

/// A matrix of `rows * columns` elements, of which `stride` is the distance of rows in `x`; the rows of `out` are dense.
pub(crate) fn copy_blocks<'a>(
    x: impl PtrArg<'a, f32>,
    out: impl PtrMutArg<'a, f32>,
    count: impl PtrMutArg<'a, u32>,
    [rows, columns, stride]: [usize; 3],
) -> Launch<'a, 9, 0> {
    launch_of(&KERNEL, x, out, count, [rows, columns, stride])
}

/// The same, whose persistent entry takes more shared memory than an A100 or an H200 has.
pub(crate) fn copy_large_blocks<'a>(
    x: impl PtrArg<'a, f32>,
    out: impl PtrMutArg<'a, f32>,
    count: impl PtrMutArg<'a, u32>,
    shape: [usize; 3],
) -> Launch<'a, 9, 0> {
    static LARGE: Kernel = crate::trusted::kernel("copy_blocks", "", SCHEDULE, PARAMS, &[Variant { ptx: ptx!("500000"), ..VARIANT }]);
    launch_of(&LARGE, x, out, count, shape)
}

/// The same kernel as that of [`copy_blocks`], of which no device has loaded anything.
pub(crate) fn unloaded() -> &'static Kernel {
    Box::leak(Box::new(crate::trusted::kernel("copy_blocks", "", SCHEDULE, PARAMS, &[VARIANT])))
}

/// The same, whose persistent entry has an instruction that there is not.
pub(crate) fn with_mistake_in_persistent_entry() -> &'static Kernel {
    let (usual, persistent) = VARIANT.ptx.split_once("// persistent entry").unwrap();
    let ptx = format!("{usual}// persistent entry{}", persistent.replacen("bar.sync 0;", "bar.mistake 0;", 1)).leak();
    let variants = vec![Variant { ptx, ..VARIANT }].leak();
    Box::leak(Box::new(crate::trusted::kernel("copy_blocks", "", SCHEDULE, PARAMS, variants)))
}

fn launch_of<'a>(
    kernel: &'static Kernel,
    x: impl PtrArg<'a, f32>,
    out: impl PtrMutArg<'a, f32>,
    count: impl PtrMutArg<'a, u32>,
    [rows, columns, stride]: [usize; 3],
) -> Launch<'a, 9, 0> {
    let mut args = Args::new(kernel);
    args.pointer("x", x);
    args.pointer_mut("out", out);
    args.pointer_mut("count", count);
    args.scalar(rows);
    args.scalar(columns);
    args.scalar(stride);
    crate::trusted::launch(args, [])
}

/// A matrix `[rows, columns, stride]` in device memory, whose first row begins at element `start`, and what a copy of it is.
pub(crate) struct Matrix {
    pub(crate) x: Tensor<f32>,
    pub(crate) start: usize,
    pub(crate) shape: [usize; 3],
    pub(crate) expected: Vec<f32>,
}

impl Matrix {
    pub(crate) fn new(device: Device, shape: [usize; 3], start: usize, seed: usize) -> Matrix {
        let [rows, columns, stride] = shape;
        // Small integers, which are exact.
        let values: Vec<f32> = (0..start + rows * stride).map(|index| ((index * 31 + seed) % 8191) as f32).collect();
        let expected = (0..rows).flat_map(|row| values[start + row * stride..][..columns].to_vec()).collect();
        Matrix { x: device.tensor(&values).unwrap(), start, shape, expected }
    }

    pub(crate) fn out(&self) -> Tensor<f32> {
        self.x.device().zeros(self.expected.len()).unwrap()
    }

    pub(crate) fn programs(&self) -> usize {
        cdiv(self.shape[0], ROWS)
    }

    pub(crate) fn copy(&self, out: &mut Tensor<f32>, count: &mut Tensor<u32>) -> Result<()> {
        copy_blocks(self.x.slice(self.start..).unwrap(), out, count, self.shape).grid(self.programs()).launch()
    }

    /// The same, by a kernel like that of [`copy_blocks`].
    pub(crate) fn copy_by(&self, kernel: &'static Kernel, out: &mut Tensor<f32>, count: &mut Tensor<u32>) -> Result<()> {
        launch_of(kernel, self.x.slice(self.start..).unwrap(), out, count, self.shape).grid(self.programs()).launch()
    }

    /// Runs a copy, and compares. Returns the CTAs of the usual and of the persistent entry.
    #[track_caller]
    pub(crate) fn check(&self, copy: impl FnOnce(&mut Tensor<f32>, &mut Tensor<u32>) -> Result<()>) -> [u32; 2] {
        let (mut out, mut count) = (self.out(), self.x.device().zeros::<u32>(2).unwrap());
        copy(&mut out, &mut count).unwrap();
        assert!(out.to_vec().unwrap() == self.expected, "{:?} at {}", self.shape, self.start);
        count.to_vec().unwrap().try_into().unwrap()
    }
}

const SCHEDULE: Schedule = Schedule { num_warps: 1, ..Schedule::DEFAULT };
const PARAMS: &[Param] = &[
    Param { name: "x", kind: ParamKind::Pointer },
    Param { name: "out", kind: ParamKind::PointerMut },
    Param { name: "count", kind: ParamKind::PointerMut },
    Param { name: "rows", kind: ParamKind::Scalar },
    Param { name: "columns", kind: ParamKind::Scalar },
    Param { name: "stride", kind: ParamKind::Scalar },
];
const VARIANT: Variant =
    Variant { key: &[], schedule: SCHEDULE, target: "sm_90a", entry: "copy_blocks", shared_bytes: 0, ptx: ptx!("60000") };

static KERNEL: Kernel = crate::trusted::kernel("copy_blocks", "", SCHEDULE, PARAMS, &[VARIANT]);
