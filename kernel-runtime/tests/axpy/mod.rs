//! A generic kernel as `#[kernel]` embeds it, without compiled variants.

use kernel_runtime::private::{Args, Element, Float, Kernel, Launch, Param, ParamKind, PtrArg, PtrMutArg, Schedule};

/// y = a * x + y
pub(crate) fn axpy<'a, T: Float, const BLOCK_SIZE: usize>(
    a: T,
    x: impl PtrArg<'a, T>,
    y: impl PtrMutArg<'a, T>,
    n: usize,
) -> Launch<'a, 6, 2> {
    let mut args = Args::new(&AXPY);
    args.scalar(a);
    args.pointer("x", x);
    args.pointer_mut("y", y);
    args.scalar(n);
    crate::trusted::launch(args, [<T as Element>::CODE, BLOCK_SIZE as u64])
}

const AXPY_IR: &str = r#"
kernel @axpy<T: f16 | bf16 | f32 | f64, const BLOCK_SIZE: i64>(%a: T, %x: ptr<T>, %y: ptr_mut<T>, %n: i64) file "src/axpy.rs" {
    %0 = program_id {axis = 0} : i64 @3:9
    %1 = const {value = BLOCK_SIZE} : i64 @3:25
    %2 = mul %0, %1 : i64 @3:23
    %3 = arange {start = 0, end = BLOCK_SIZE} : tile<i64, [BLOCK_SIZE]> @3:40
    %4 = broadcast %2 : tile<i64, [BLOCK_SIZE]> @3:38
    %5 = add %4, %3 : tile<i64, [BLOCK_SIZE]> @3:38
    %6 = broadcast %n : tile<i64, [BLOCK_SIZE]> @4:26
    %7 = lt %5, %6 : tile<bool, [BLOCK_SIZE]> @4:24
    %8 = load %x, %5 {mask = %7} : tile<T, [BLOCK_SIZE]> @5:13
    %9 = load %y, %5 {mask = %7} : tile<T, [BLOCK_SIZE]> @6:13
    %10 = broadcast %a : tile<T, [BLOCK_SIZE]> @7:13
    %11 = mul %10, %8 : tile<T, [BLOCK_SIZE]> @7:13
    %12 = add %11, %9 : tile<T, [BLOCK_SIZE]> @7:13
    store %y, %5, %12 {mask = %7} @8:5
    return
}
"#;

const PARAMS: &[Param] = &[
    Param { name: "a", kind: ParamKind::Scalar },
    Param { name: "x", kind: ParamKind::Pointer },
    Param { name: "y", kind: ParamKind::PointerMut },
    Param { name: "n", kind: ParamKind::Scalar },
];

pub(crate) static AXPY: Kernel = crate::trusted::kernel("axpy", AXPY_IR, Schedule::DEFAULT, PARAMS, &[]);
