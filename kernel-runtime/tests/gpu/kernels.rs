//! Kernels written by hand in PTX, with launchers as `#[kernel]` makes them.

use kernel_runtime::Device;
use kernel_runtime::private::{Args, Kernel, Launch, PtrArg, PtrMutArg, Schedule, Variant};

/// Threads of a program, and the elements it works on.
pub(crate) const BLOCK: usize = 128;

const fn variant(entry: &'static str, ptx: &'static str) -> Variant {
    Variant { key: &[], schedule: Schedule::DEFAULT, target: "sm_80", entry, shared_bytes: 0, ptx }
}

/// out = x + y
pub(crate) fn add<'a>(x: impl PtrArg<'a, f32>, y: impl PtrArg<'a, f32>, out: impl PtrMutArg<'a, f32>, n: usize) -> Launch<'a, 7, 0> {
    static KERNEL: Kernel = crate::trusted::kernel("add", "", Schedule::DEFAULT, &[], &[variant("add", ADD)]);
    let mut args = Args::new(&KERNEL);
    args.pointer("x", x);
    args.pointer("y", y);
    args.pointer_mut("out", out);
    args.scalar(n);
    crate::trusted::launch(args, [])
}

/// out = x, each element after some GPU clock cycles.
pub(crate) fn slow_copy<'a>(x: impl PtrArg<'a, f32>, out: impl PtrMutArg<'a, f32>, cycles: i64) -> Launch<'a, 5, 0> {
    static KERNEL: Kernel = crate::trusted::kernel("slow_copy", "", Schedule::DEFAULT, &[], &[variant("slow_copy", SLOW_COPY)]);
    slow_copy_of(&KERNEL, x, out, cycles)
}

/// The same, but it lets the launch behind it begin at once.
pub(crate) fn early_and_slow<'a>(x: impl PtrArg<'a, f32>, out: impl PtrMutArg<'a, f32>, cycles: i64) -> Launch<'a, 5, 0> {
    const VARIANT: Variant = Variant { target: "sm_90a", ..variant("early_and_slow", EARLY_AND_SLOW) };
    static KERNEL: Kernel = crate::trusted::kernel("early_and_slow", "", Schedule::DEFAULT, &[], &[VARIANT]);
    slow_copy_of(&KERNEL, x, out, cycles)
}

fn slow_copy_of<'a>(kernel: &'static Kernel, x: impl PtrArg<'a, f32>, out: impl PtrMutArg<'a, f32>, cycles: i64) -> Launch<'a, 5, 0> {
    let mut args = Args::new(kernel);
    args.pointer("x", x);
    args.pointer_mut("out", out);
    // The simulated driver is late by itself.
    args.scalar(if is_simulated() { 0 } else { cycles });
    crate::trusted::launch(args, [])
}

/// Is the driver the one of simulated GPUs?
pub(crate) fn is_simulated() -> bool {
    Device::cuda(0).is_ok_and(|device| device.name().starts_with("simulated"))
}

/// Every width of scalar, stored as a float each.
#[allow(clippy::too_many_arguments, reason = "one of each")]
pub(crate) fn scalars<'a>(
    out: impl PtrMutArg<'a, f32>,
    flag: bool,
    byte: i8,
    short: u16,
    int: i32,
    single: f32,
    double: f64,
) -> Launch<'a, 8, 0> {
    static KERNEL: Kernel = crate::trusted::kernel("scalars", "", Schedule::DEFAULT, &[], &[variant("scalars", SCALARS)]);
    let mut args = Args::new(&KERNEL);
    args.pointer_mut("out", out);
    args.scalar(flag);
    args.scalar(byte);
    args.scalar(short);
    args.scalar(int);
    args.scalar(single);
    args.scalar(double);
    crate::trusted::launch(args, [])
}

/// A wild store.
pub(crate) fn wild<'a>(out: impl PtrMutArg<'a, f32>) -> Launch<'a, 2, 0> {
    static KERNEL: Kernel = crate::trusted::kernel("wild", "", Schedule::DEFAULT, &[], &[variant("wild", WILD)]);
    let mut args = Args::new(&KERNEL);
    args.pointer_mut("out", out);
    crate::trusted::launch(args, [])
}

/// Does nothing, with four arguments.
pub(crate) fn nothing<'a>(x: impl PtrArg<'a, f32>, y: impl PtrArg<'a, f32>, out: impl PtrMutArg<'a, f32>, n: usize) -> Launch<'a, 7, 0> {
    static KERNEL: Kernel = crate::trusted::kernel("nothing", "", Schedule::DEFAULT, &[], &[variant("nothing", NOTHING)]);
    let mut args = Args::new(&KERNEL);
    args.pointer("x", x);
    args.pointer("y", y);
    args.pointer_mut("out", out);
    args.scalar(n);
    crate::trusted::launch(args, [])
}

/// Has more threads than any GPU lets a program have.
pub(crate) fn crowded() -> Launch<'static, 0, 0> {
    const SCHEDULE: Schedule = Schedule { num_warps: 64, ..Schedule::DEFAULT };
    const VARIANT: Variant = Variant { schedule: SCHEDULE, ..variant("crowded", CROWDED) };
    static KERNEL: Kernel = crate::trusted::kernel("crowded", "", SCHEDULE, &[], &[VARIANT]);
    crate::trusted::launch(Args::new(&KERNEL), [])
}

const CROWDED: &str = ".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry crowded() {\n    ret;\n}\n";

/// Writes to dynamic shared memory beyond what a kernel has without asking, and stores what is there.
pub(crate) fn shared<'a>(out: impl PtrMutArg<'a, f32>) -> Launch<'a, 2, 0> {
    const VARIANT: Variant = Variant { shared_bytes: 100 << 10, ..variant("shared", SHARED) };
    static KERNEL: Kernel = crate::trusted::kernel("shared", "", Schedule::DEFAULT, &[], &[VARIANT]);
    let mut args = Args::new(&KERNEL);
    args.pointer_mut("out", out);
    crate::trusted::launch(args, [])
}

pub(crate) const ADD: &str = r"
.version 7.0
.target sm_80
.address_size 64
.visible .entry add(.param .u64 x, .param .u64 x_len, .param .u64 y, .param .u64 y_len, .param .u64 out, .param .u64 out_len, .param .u64 n)
{
    .reg .pred %p;
    .reg .b32 %r<3>;
    .reg .b64 %rd<8>;
    .reg .f32 %f<3>;
    mov.u32 %r0, %ctaid.x;
    mov.u32 %r1, %tid.x;
    mad.lo.u32 %r2, %r0, 128, %r1;
    cvt.u64.u32 %rd0, %r2;
    ld.param.u64 %rd1, [n];
    setp.ge.u64 %p, %rd0, %rd1;
    @%p ret;
    shl.b64 %rd2, %rd0, 2;
    ld.param.u64 %rd3, [x];
    add.u64 %rd3, %rd3, %rd2;
    ld.param.u64 %rd4, [y];
    add.u64 %rd4, %rd4, %rd2;
    ld.param.u64 %rd5, [out];
    add.u64 %rd5, %rd5, %rd2;
    ld.global.f32 %f0, [%rd3];
    ld.global.f32 %f1, [%rd4];
    add.rn.f32 %f2, %f0, %f1;
    st.global.f32 [%rd5], %f2;
    ret;
}
";

/// A copy after some cycles: the version and target it is for, its name, and what it does first.
macro_rules! slow_copy_ptx {
    ($version:literal, $target:literal, $entry:literal, $first:literal) => {
        concat!(
            ".version ",
            $version,
            "\n.target ",
            $target,
            "\n.address_size 64\n.visible .entry ",
            $entry,
            r"(.param .u64 x, .param .u64 x_len, .param .u64 out, .param .u64 out_len, .param .u64 cycles)
{
    .reg .pred %p;
    .reg .b32 %r<3>;
    .reg .b64 %rd<10>;
    .reg .f32 %f0;
",
            $first,
            r"
    ld.param.u64 %rd7, [cycles];
    mov.u64 %rd8, %clock64;
spin:
    mov.u64 %rd9, %clock64;
    sub.u64 %rd9, %rd9, %rd8;
    setp.lt.u64 %p, %rd9, %rd7;
    @%p bra spin;
    mov.u32 %r0, %ctaid.x;
    mov.u32 %r1, %tid.x;
    mad.lo.u32 %r2, %r0, 128, %r1;
    cvt.u64.u32 %rd0, %r2;
    ld.param.u64 %rd1, [out_len];
    setp.ge.u64 %p, %rd0, %rd1;
    @%p ret;
    shl.b64 %rd2, %rd0, 2;
    ld.param.u64 %rd3, [x];
    add.u64 %rd3, %rd3, %rd2;
    ld.param.u64 %rd5, [out];
    add.u64 %rd5, %rd5, %rd2;
    ld.global.f32 %f0, [%rd3];
    st.global.f32 [%rd5], %f0;
    ret;
}
"
        )
    };
}

const SLOW_COPY: &str = slow_copy_ptx!("7.0", "sm_80", "slow_copy", "");
const EARLY_AND_SLOW: &str = slow_copy_ptx!("8.0", "sm_90a", "early_and_slow", "griddepcontrol.launch_dependents;");

const SCALARS: &str = r"
.version 7.0
.target sm_80
.address_size 64
.visible .entry scalars(.param .u64 out, .param .u64 out_len, .param .b8 flag, .param .b8 byte, .param .b16 short, .param .b32 int, .param .b32 single, .param .b64 double)
{
    .reg .pred %p;
    .reg .b16 %h<3>;
    .reg .b32 %r<2>;
    .reg .b64 %rd0;
    .reg .f32 %f<6>;
    .reg .f64 %d0;
    mov.u32 %r0, %tid.x;
    setp.ne.u32 %p, %r0, 0;
    @%p ret;
    ld.param.u64 %rd0, [out];
    ld.param.u8 %h0, [flag];
    cvt.rn.f32.u16 %f0, %h0;
    ld.param.s8 %h1, [byte];
    cvt.rn.f32.s16 %f1, %h1;
    ld.param.u16 %h2, [short];
    cvt.rn.f32.u16 %f2, %h2;
    ld.param.u32 %r1, [int];
    cvt.rn.f32.s32 %f3, %r1;
    ld.param.f32 %f4, [single];
    ld.param.f64 %d0, [double];
    cvt.rn.f32.f64 %f5, %d0;
    st.global.f32 [%rd0], %f0;
    st.global.f32 [%rd0+4], %f1;
    st.global.f32 [%rd0+8], %f2;
    st.global.f32 [%rd0+12], %f3;
    st.global.f32 [%rd0+16], %f4;
    st.global.f32 [%rd0+20], %f5;
    ret;
}
";

const WILD: &str = r"
.version 7.0
.target sm_80
.address_size 64
.visible .entry wild(.param .u64 out, .param .u64 out_len)
{
    .reg .b64 %rd0;
    mov.u64 %rd0, 64;
    st.global.u64 [%rd0], %rd0;
    ret;
}
";

pub(crate) const NOTHING: &str = r"
.version 7.0
.target sm_80
.address_size 64
.visible .entry nothing(.param .u64 x, .param .u64 x_len, .param .u64 y, .param .u64 y_len, .param .u64 out, .param .u64 out_len, .param .u64 n)
{
    ret;
}
";

const SHARED: &str = r"
.version 7.0
.target sm_80
.address_size 64
.extern .shared .align 16 .b8 room[];
.visible .entry shared(.param .u64 out, .param .u64 out_len)
{
    .reg .pred %p;
    .reg .b64 %rd0;
    .reg .b32 %r<2>;
    .reg .f32 %f0;
    mov.u32 %r0, room;
    mov.u32 %r1, %tid.x;
    setp.ne.u32 %p, %r1, 0;
    @%p ret;
    mov.f32 %f0, 0f40E00000;
    st.shared.f32 [%r0+102396], %f0;
    ld.shared.f32 %f0, [%r0+102396];
    ld.param.u64 %rd0, [out];
    st.global.f32 [%rd0], %f0;
    ret;
}
";
