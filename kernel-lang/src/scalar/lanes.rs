//! Elementwise ops as loops over arrays: the only table from (op, dtype) to code. An op on a [`super::Scalar`] is a loop with one iteration.
//!
//! Arrays have the memory format of elements: `bool` is a byte that holds 0 or 1. Ops that ignore the sign (sums, bits, equality) have one
//! loop per width, which halves the code.

use std::ptr::NonNull;

use half::{bf16, f16};

use crate::dtype::Dtype;
use crate::ir::{BinaryOp, CompareOp, UnaryOp, to_f64_odd};
use crate::scalar::float::{F8E4M3, F8E5M2, Real, Wide};
use crate::scalar::half as convert;
use crate::scalar::int::Int;

/// A loop: `for lane in 0..count { result[lane] = op(operands[0][lane], operands[1][lane], ..) }`. Operands that the op lacks are not read.
///
/// # Safety
/// The result and each operand of the op point to `count` initialised elements of the op's types, aligned for them; the result overlaps no
/// operand. Bytes of `bool` operands are 0 or 1.
pub type Lanes = unsafe fn(result: *mut u8, operands: [*const u8; 3], count: usize);

/// Declares two functions that make loops over a function with a given number of operands. `F` has size zero, so the type determines the
/// function and the loop needs no state. Loops of the second maker are compiled twice, the second time for the vector unit of x86-64-v3, and
/// the CPU determines at run time which one runs. Both give the same bits: nothing is contracted or reordered.
macro_rules! makers {
    ($(#[$doc:meta])* $lanes:ident, $wide:ident, ($($arg:ident : $ty:ident at $index:literal),*) -> $result:ident, <$($generic:ident),*>) => {
        $(#[$doc])*
        fn $lanes<$($generic: Copy,)* F: Fn($($ty),*) -> $result + Copy>(_: F) -> Lanes {
            const { assert!(size_of::<F>() == 0) };
            $wide::run::<$($generic,)* F>
        }

        /// As the maker above, for loops with expensive bodies.
        fn $wide<$($generic: Copy,)* F: Fn($($ty),*) -> $result + Copy>(_: F) -> Lanes {
            const { assert!(size_of::<F>() == 0) };
            #[cfg(target_arch = "x86_64")]
            if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
                return $wide::run_v3::<$($generic,)* F>;
            }
            $wide::run::<$($generic,)* F>
        }

        mod $wide {
            /// # Safety
            /// The contract of [`super::Lanes`].
            #[inline(always)]
            pub(super) unsafe fn run<$($generic: Copy,)* F: Fn($($ty),*) -> $result + Copy>(
                result: *mut u8,
                operands: [*const u8; 3],
                count: usize,
            ) {
                let f = super::conjured::<F>();
                // SAFETY: the contract of `Lanes`.
                let result = unsafe { super::out::<$result>(result, count) };
                // SAFETY: the contract of `Lanes`.
                $(let $arg = unsafe { super::lane::<$ty>(operands[$index], count) };)*
                for lane in 0..count {
                    result[lane] = f($($arg[lane]),*);
                }
            }

            /// # Safety
            /// The contract of [`super::Lanes`], on a machine that has these features.
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,fma")]
            pub(super) unsafe fn run_v3<$($generic: Copy,)* F: Fn($($ty),*) -> $result + Copy>(
                result: *mut u8,
                operands: [*const u8; 3],
                count: usize,
            ) {
                // SAFETY: the caller's promise.
                unsafe { run::<$($generic,)* F>(result, operands, count) }
            }
        }
    };
}

makers! {
    /// The loop over a function of one operand.
    lanes1, wide1, (a: A at 0) -> R, <A, R>
}
makers! {
    /// The loop over a function of two operands.
    lanes2, wide2, (a: A at 0, b: A at 1) -> R, <A, R>
}
makers! {
    /// The loop over a function of three operands.
    lanes3, wide3, (a: A at 0, b: B at 1, c: B at 2) -> B, <A, B>
}

/// The loop over `usual`, followed by a loop over `whole` for the elements that are `hard`, which are rare.
fn wide1_but<A: Copy, R: Copy, F: Fn(A) -> R + Copy, H: Fn(A) -> bool + Copy, G: Fn(A) -> R + Copy>(_: F, _: H, _: G) -> Lanes {
    unsafe fn run<A: Copy, R: Copy, F: Fn(A) -> R + Copy, H: Fn(A) -> bool + Copy, G: Fn(A) -> R + Copy>(
        result: *mut u8,
        operands: [*const u8; 3],
        count: usize,
    ) {
        let (hard, whole) = (conjured::<H>(), conjured::<G>());
        // SAFETY: the contract of `Lanes`, here and below.
        unsafe { wide1(conjured::<F>())(result, operands, count) };
        // SAFETY: as above.
        let a = unsafe { lane::<A>(operands[0], count) };
        if a.iter().fold(false, |any, a| any | hard(*a)) {
            // SAFETY: as above.
            let result = unsafe { out::<R>(result, count) };
            for lane in (0..count).filter(|lane| hard(a[*lane])) {
                result[lane] = whole(a[lane]);
            }
        }
    }
    run::<A, R, F, H, G>
}

/// The value of a function type of size zero.
fn conjured<F: Copy>() -> F {
    const { assert!(size_of::<F>() == 0) };
    // SAFETY: this reads no bytes through an aligned pointer. The caller had a value of `F`, and `F` is `Copy`.
    unsafe { NonNull::<F>::dangling().read() }
}

/// # Safety
/// As the result of [`Lanes`], for `'a`.
unsafe fn out<'a, R>(at: *mut u8, count: usize) -> &'a mut [R] {
    // SAFETY: the caller's promise; the borrow ends with the loop.
    unsafe { std::slice::from_raw_parts_mut(at.cast(), count) }
}

/// # Safety
/// As an operand of [`Lanes`], for `'a`.
unsafe fn lane<'a, A>(at: *const u8, count: usize) -> &'a [A] {
    // SAFETY: the caller's promise; the borrow ends with the loop.
    unsafe { std::slice::from_raw_parts(at.cast(), count) }
}

/// The expression with `$T` as alias of the unsigned type of the dtype's width.
macro_rules! by_width {
    ($dtype:expr, $T:ident => $body:expr) => {
        match $dtype.bytes() {
            1 => {
                type $T = u8;
                $body
            }
            2 => {
                type $T = u16;
                $body
            }
            4 => {
                type $T = u32;
                $body
            }
            _ => {
                type $T = u64;
                $body
            }
        }
    };
}

/// The expression with `$T` as alias of the integer type; `bool` is a `u8`.
macro_rules! by_int {
    ($dtype:expr, $T:ident => $body:expr) => {
        match $dtype {
            Dtype::I8 => {
                type $T = i8;
                $body
            }
            Dtype::I16 => {
                type $T = i16;
                $body
            }
            Dtype::I32 => {
                type $T = i32;
                $body
            }
            Dtype::I64 => {
                type $T = i64;
                $body
            }
            Dtype::U16 => {
                type $T = u16;
                $body
            }
            Dtype::U32 => {
                type $T = u32;
                $body
            }
            Dtype::U64 => {
                type $T = u64;
                $body
            }
            _ => {
                type $T = u8;
                $body
            }
        }
    };
}

/// The expression with `$T` as alias of the float type, for floats with arithmetic.
macro_rules! by_float {
    ($dtype:expr, $T:ident => $body:expr) => {
        match $dtype {
            Dtype::F16 => {
                type $T = f16;
                $body
            }
            Dtype::Bf16 => {
                type $T = bf16;
                $body
            }
            Dtype::F64 => {
                type $T = f64;
                $body
            }
            _ => {
                type $T = f32;
                $body
            }
        }
    };
}

/// As [`by_float`], for the floats narrower than `f32`.
macro_rules! by_narrow {
    ($dtype:expr, $T:ident => $body:expr) => {
        match $dtype {
            Dtype::F16 => {
                type $T = f16;
                $body
            }
            Dtype::Bf16 => {
                type $T = bf16;
                $body
            }
            Dtype::F8E4M3 => {
                type $T = F8E4M3;
                $body
            }
            _ => {
                type $T = F8E5M2;
                $body
            }
        }
    };
}

/// As [`by_float`], for every float.
macro_rules! by_any_float {
    ($dtype:expr, $T:ident => $body:expr) => {
        match $dtype {
            Dtype::F32 | Dtype::F64 => by_float!($dtype, $T => $body),
            _ => by_narrow!($dtype, $T => $body),
        }
    };
}

/// The loop of an op of one operand; `None` outside the op's domain.
#[inline]
pub fn unary(op: UnaryOp, dtype: Dtype) -> Option<Lanes> {
    if !op.domain().contains(dtype) {
        return None;
    }
    Some(match op {
        UnaryOp::Not if dtype == Dtype::Bool => lanes1(|x: u8| x ^ 1),
        UnaryOp::Not => by_width!(dtype, T => lanes1(|x: T| !x)),
        // Floats: the sign bit changes, also for NaN and zero.
        UnaryOp::Neg if dtype.is_float() => by_width!(dtype, T => lanes1(|x: T| x ^ (1 << (T::BITS - 1)))),
        UnaryOp::Abs if dtype.is_float() => by_width!(dtype, T => lanes1(|x: T| x & (T::MAX >> 1))),
        UnaryOp::Neg => by_width!(dtype, T => lanes1(|x: T| x.wrapping_neg())),
        UnaryOp::Abs => by_int!(dtype, T => lanes1(|x: T| x.absolute())),
        UnaryOp::Popc => by_width!(dtype, T => lanes1(|x: T| x.ones())),
        UnaryOp::Clz => by_width!(dtype, T => lanes1(|x: T| x.zeros_ahead())),
        UnaryOp::Brev => by_width!(dtype, T => lanes1(|x: T| x.reversed())),
        _ => by_float!(dtype, T => unary_float::<T>(op)),
    })
}

fn unary_float<T: Real>(op: UnaryOp) -> Lanes {
    macro_rules! wide {
        ($function:ident) => {
            wide1(|x: T| T::narrow(x.widen().$function()))
        };
    }
    macro_rules! angle {
        ($small:ident, $function:ident) => {
            wide1_but(|x: T| T::narrow(x.widen().$small()), |x: T| x.widen().is_hard_angle(), |x: T| T::narrow(x.widen().$function()))
        };
    }
    match op {
        UnaryOp::Exp => wide!(exp),
        UnaryOp::Exp2 | UnaryOp::ExpApprox2 => wide!(exp2),
        UnaryOp::ExpApproxFtz2 => wide!(exp2_ftz),
        UnaryOp::Log => wide!(log),
        UnaryOp::Log2 | UnaryOp::LogApprox2 => wide!(log2),
        UnaryOp::Sqrt | UnaryOp::SqrtApprox => wide!(sqrt),
        UnaryOp::Rsqrt | UnaryOp::RsqrtApprox => wide!(rsqrt),
        UnaryOp::RecipApprox => wide!(recip),
        UnaryOp::Sin | UnaryOp::SinApprox => angle!(sin_small, sin),
        UnaryOp::Cos | UnaryOp::CosApprox => angle!(cos_small, cos),
        UnaryOp::Tan => angle!(tan_small, tan),
        UnaryOp::Tanh | UnaryOp::TanhApprox => wide!(tanh),
        UnaryOp::Sigmoid => wide!(sigmoid),
        UnaryOp::Erf => wide!(erf),
        UnaryOp::Floor => wide!(floor),
        UnaryOp::Ceil => wide!(ceil),
        UnaryOp::Round => wide!(round),
        UnaryOp::Rint => wide!(rint),
        UnaryOp::Trunc => wide!(trunc),
        UnaryOp::Neg | UnaryOp::Abs | UnaryOp::Not | UnaryOp::Popc | UnaryOp::Clz | UnaryOp::Brev => {
            unreachable!("`unary` takes them by width")
        }
    }
}

/// The loop of an op of two operands; `None` outside the op's domain.
#[inline]
pub fn binary(op: BinaryOp, dtype: Dtype) -> Option<Lanes> {
    if !op.domain().contains(dtype) {
        return None;
    }
    if op == BinaryOp::CopySign {
        return Some(by_width!(dtype, T => lanes2(|a: T, b: T| (a & (T::MAX >> 1)) | (b & !(T::MAX >> 1)))));
    }
    if dtype.is_float() {
        return by_float!(dtype, T => binary_float::<T>(op));
    }
    Some(match op {
        BinaryOp::Add => by_width!(dtype, T => lanes2(|a: T, b: T| a.wrapping_add(b))),
        BinaryOp::Sub => by_width!(dtype, T => lanes2(|a: T, b: T| a.wrapping_sub(b))),
        BinaryOp::Mul => by_width!(dtype, T => lanes2(|a: T, b: T| a.wrapping_mul(b))),
        BinaryOp::And => by_width!(dtype, T => lanes2(|a: T, b: T| a & b)),
        BinaryOp::Or => by_width!(dtype, T => lanes2(|a: T, b: T| a | b)),
        BinaryOp::Xor => by_width!(dtype, T => lanes2(|a: T, b: T| a ^ b)),
        BinaryOp::Shl => by_width!(dtype, T => lanes2(|a: T, b: T| a.shift_left(b))),
        BinaryOp::Shr => by_int!(dtype, T => lanes2(|a: T, b: T| a.shift_right(b))),
        BinaryOp::Div => by_int!(dtype, T => lanes2(|a: T, b: T| a.quotient(b))),
        BinaryOp::Rem => by_int!(dtype, T => lanes2(|a: T, b: T| a.remainder(b))),
        BinaryOp::Min => by_int!(dtype, T => lanes2(|a: T, b: T| a.min(b))),
        BinaryOp::Max => by_int!(dtype, T => lanes2(|a: T, b: T| a.max(b))),
        BinaryOp::MulHigh => by_int!(dtype, T => lanes2(|a: T, b: T| a.multiply_high(b))),
        BinaryOp::CopySign | BinaryOp::DivApprox => unreachable!("no op on integers"),
    })
}

fn binary_float<T: Real>(op: BinaryOp) -> Option<Lanes> {
    Some(match op {
        BinaryOp::Add => wide2(|a: T, b: T| T::narrow(a.widen() + b.widen())),
        BinaryOp::Sub => wide2(|a: T, b: T| T::narrow(a.widen() - b.widen())),
        BinaryOp::Mul => wide2(|a: T, b: T| T::narrow(a.widen() * b.widen())),
        BinaryOp::Div | BinaryOp::DivApprox => wide2(|a: T, b: T| T::narrow(a.widen() / b.widen())),
        BinaryOp::Rem => wide2(|a: T, b: T| T::narrow(a.widen() % b.widen())),
        BinaryOp::Min => wide2(|a: T, b: T| T::narrow(a.widen().minimum(b.widen()))),
        BinaryOp::Max => wide2(|a: T, b: T| T::narrow(a.widen().maximum(b.widen()))),
        _ => return None,
    })
}

/// The loop of a comparison, and whether its operands must be swapped: `a > b` is `b < a`, also for NaN.
#[inline]
pub fn compare(op: CompareOp, dtype: Dtype) -> (Lanes, bool) {
    let (op, swapped) = if matches!(op, CompareOp::Gt | CompareOp::Ge) { (op.swapped(), true) } else { (op, false) };
    let lanes = match op {
        _ if dtype.is_float() => by_any_float!(dtype, T => compare_float::<T>(op)),
        CompareOp::Eq => by_width!(dtype, T => lanes2(|a: T, b: T| u8::from(a == b))),
        CompareOp::Ne => by_width!(dtype, T => lanes2(|a: T, b: T| u8::from(a != b))),
        CompareOp::Lt => by_int!(dtype, T => lanes2(|a: T, b: T| u8::from(a < b))),
        _ => by_int!(dtype, T => lanes2(|a: T, b: T| u8::from(a <= b))),
    };
    (lanes, swapped)
}

fn compare_float<T: Real>(op: CompareOp) -> Lanes {
    match op {
        CompareOp::Eq => lanes2(|a: T, b: T| u8::from(a.widen() == b.widen())),
        CompareOp::Ne => lanes2(|a: T, b: T| u8::from(a.widen() != b.widen())),
        CompareOp::Lt => lanes2(|a: T, b: T| u8::from(a.widen() < b.widen())),
        _ => lanes2(|a: T, b: T| u8::from(a.widen() <= b.widen())),
    }
}

/// A computation in `f32` would round twice.
#[inline(always)]
fn fma_half<T: Real<Wide = f32>>(a: T, b: T, c: T) -> T {
    let [a, b, c] = [a, b, c].map(|x| f64::from(x.widen()));
    T::from_f64_odd(convert::sum_to_odd(a * b, c))
}

/// The loop that rounds `f32` to `tf32`.
#[inline]
pub fn tf32() -> Lanes {
    lanes1(super::tf32)
}

/// The loop of `a * b + c`; `None` for integers.
#[inline]
pub fn fma(dtype: Dtype) -> Option<Lanes> {
    Some(match dtype {
        Dtype::F16 => wide3(fma_half::<f16>),
        Dtype::Bf16 => wide3(fma_half::<bf16>),
        Dtype::F32 => wide3(|a: f32, b: f32, c: f32| a.fma(b, c)),
        Dtype::F64 => wide3(|a: f64, b: f64, c: f64| a.fma(b, c)),
        _ => return None,
    })
}

/// The loop of `if condition { a } else { b }`, whose first operand is the `bool`.
#[inline]
pub fn select(dtype: Dtype) -> Lanes {
    by_width!(dtype, T => lanes3(|condition: u8, a: T, b: T| if condition != 0 { a } else { b }))
}

/// The loop of `x as to`.
#[inline]
pub fn cast(from: Dtype, to: Dtype) -> Lanes {
    match (from, to) {
        _ if from == to => by_width!(from, T => lanes1(|x: T| x)),
        // Without its sign bit, a float is 0 exactly if its bits are 0.
        (_, Dtype::Bool) if from.is_float() => by_width!(from, T => lanes1(|x: T| u8::from(x << 1 != 0))),
        (_, Dtype::Bool) => by_width!(from, T => lanes1(|x: T| u8::from(x != 0))),
        _ if !from.is_float() && !to.is_float() => by_int!(from, F => by_width!(to, T => lanes1(|x: F| x as T))),
        (_, Dtype::F32) if !from.is_float() => by_int!(from, F => lanes1(|x: F| x as f32)),
        (_, Dtype::F64) if !from.is_float() => by_int!(from, F => lanes1(|x: F| x as f64)),
        _ if !from.is_float() => by_int!(from, F => by_any_float!(to, T => lanes1(|x: F| T::from_f64_odd(int_to_f64_odd(x.into()))))),
        _ if !to.is_float() => by_any_float!(from, F => by_int!(to, T => lanes1(|x: F| x.widen() as T))),
        (Dtype::F64, _) => by_any_float!(to, T => wide1(|x: f64| T::from_f64_odd(x))),
        (Dtype::F32, Dtype::F64) => wide1(|x: f32| f64::from(x)),
        (_, Dtype::F64) => by_narrow!(from, F => wide1(|x: F| f64::from(x.widen()))),
        (_, Dtype::F32) => by_narrow!(from, F => wide1(|x: F| x.widen())),
        (Dtype::F32, _) => by_narrow!(to, T => wide1(|x: f32| T::narrow(x))),
        _ => by_narrow!(from, F => by_narrow!(to, T => wide1(|x: F| T::narrow(x.widen())))),
    }
}

/// Converts an integer to `f64` with rounding to odd; directly if it fits into 53 bits.
#[inline(always)]
fn int_to_f64_odd(x: i128) -> f64 {
    let small = x as i64;
    if small.unsigned_abs() < 1 << 53 && i128::from(small) == x { small as f64 } else { to_f64_odd(x) }
}

/// The loops that split an `f32` angle, one for each of the two results.
#[inline]
pub fn reduce_pio2() -> [Lanes; 2] {
    use crate::scalar::pio2::reduce_pio2;
    [lanes1(|x: f32| reduce_pio2(x).0), lanes1(|x: f32| reduce_pio2(x).1)]
}
