//! `sin`, `cos` and `tan` of `f32`: after `reduce_pio2`, polynomials on [-pi/4, pi/4].
//!
//! | quadrant | sin | cos | tan |
//! |---|---|---|---|
//! | 0 | s | c | t |
//! | 1 | c | -s | -1/t |
//! | 2 | -s | -c | t |
//! | 3 | -c | s | -1/t |
//!
//! # `reduce_pio2` in a backend
//!
//! The op stays a primitive, because a branch pays here: few elements take the slow path. The PTX below computes `%r` and the quadrant `%q`
//! from `%x`. `tests/math/reduction.rs` has the same in Rust, and shows that r is within 0.51 ulp for the worst angles of each exponent.
//!
//! ```text
//! .const .align 4 .b32 two_over_pi[7] = {0, 0xa2f9836e, 0x4e441529, 0xfc2757d1, 0xf534ddc0, 0xdb629599, 0x3c439041};
//!
//!     fma.rn.f32      %t, %x, 0f3F22F983, 0f4B400000;     // 2/pi x + 1.5 * 2^23: rounded to the nearest integer n
//!     mov.b32         %q, %t;                             // whose low bits are those of n
//!     add.rn.f32      %n, %t, 0fCB400000;
//!     fma.rn.f32      %r, %n, 0fBFC90FDA, %x;             // x - n pi/2, with pi/2 in three parts, rounded down
//!     fma.rn.f32      %r, %n, 0fB3A22168, %r;             // so that a zero x keeps its sign
//!     fma.rn.f32      %r, %n, 0fA7C234C4, %r;
//!     abs.f32         %a, %x;
//!     setp.gt.f32     %slow, %a, 0f47CE4780;              // 105615; false for NaN, for which %r is NaN already
//!     @!%slow bra     done;
//!     mov.b32         %b, %x;
//!     shl.b32         %s, %b, 8;
//!     or.b32          %s, %s, 0x80000000;                 // |x| = s 2^(exponent - 158)
//!     bfe.u32         %e, %b, 23, 8;
//!     sub.u32         %e, %e, 128;                        // where the window of 96 bits begins: word e / 32, bit e % 32
//!     shr.u32         %w, %e, 5;
//!     // %w0 .. %w3 = two_over_pi[%w] .. two_over_pi[%w + 3], by ld.const.u32: %w is at most 3, for inf too
//!     shf.l.wrap.b32  %w0, %w1, %w0, %e;
//!     shf.l.wrap.b32  %w1, %w2, %w1, %e;
//!     shf.l.wrap.b32  %w2, %w3, %w2, %e;
//!     mul.hi.u32      %c, %s, %w2;
//!     cvt.u64.u32     %p, %c;
//!     mad.wide.u32    %p, %s, %w1, %p;
//!     mov.b64         {%lo, %hi}, %p;
//!     mad.lo.u32      %hi, %s, %w0, %hi;                  // hi:lo / 2^62 is 2/pi |x| modulo 4
//!     add.u32         %q, %hi, 0x20000000;
//!     shr.u32         %q, %q, 30;                         // rounded to the nearest
//!     shf.l.wrap.b32  %hi, %lo, %hi, 2;                   // the fraction, now signed: in [-1/2, 1/2)
//!     shl.b32         %lo, %lo, 2;
//!     mov.b64         %p, {%lo, %hi};
//!     cvt.rn.f64.s64  %d, %p;
//!     mul.rn.f64      %d, %d, 0d3BF921FB54442D18;         // pi/2 2^-64
//!     cvt.rn.f32.f64  %r, %d;
//!     setp.lt.s32     %minus, %b, 0;
//!     @%minus neg.f32 %r, %r;
//!     @%minus neg.s32 %q, %q;
//!     sub.rn.f32      %z, %x, %x;                         // NaN for inf
//!     add.rn.f32      %r, %r, %z;
//! done:
//!     and.b32         %q, %q, 3;
//! ```

use crate::ir::{BinaryOp, CompareOp, UnaryOp, Value};

use super::formula::Formula;

/// sin(r) = r + r z p(z), z = r^2; relative error 2^-27.9.
const SIN: [f64; 3] = [-0.16666655242443085, 0.008332189172506332, -0.00019518285989761353];
/// cos(r) = 1 - z/2 + z^2 p(z); relative error 2^-33.
const COS: [f64; 3] = [0.04166664555668831, -0.0013887309469282627, 2.4432327336398885e-5];
/// tan(r) = r + r z p(z); relative error 2^-25.7.
const TAN: [f64; 6] =
    [0.33333155512809753, 0.13338835537433624, 0.05340820178389549, 0.024441389366984367, 0.003101490903645754, 0.009396516717970371];

/// r + r z p(z), with the sign of a zero r.
fn odd(f: &mut Formula<'_>, r: Value, z: Value, p: &[f64]) -> Value {
    let p = f.polynomial(z, p);
    let w = f.fma_plus(p, z, 0.0);
    f.fma(w, r, r)
}

/// The sine of the sum of `quadrant` quarter turns and r.
fn sin_of_parts(f: &mut Formula<'_>, r: Value, quadrant: Value) -> Value {
    let z = f.mul(r, r);
    let sin = odd(f, r, z, &SIN);
    let p = f.polynomial(z, &COS);
    let minus_half = f.k(-0.5);
    let q = f.fma(p, z, minus_half);
    let cos = f.fma_plus(q, z, 1.0);
    let is_odd = is_odd(f, quadrant);
    let magnitude = f.select(is_odd, cos, sin);
    // Bit 1 of the quadrant is the sign.
    let half_turn = f.int_op(BinaryOp::And, quadrant, 2);
    let sign = f.int_op(BinaryOp::Shl, half_turn, 30);
    let sign = f.bitcast(sign, crate::dtype::Dtype::U32);
    let bits = f.bits(magnitude);
    let bits = f.binary(BinaryOp::Xor, bits, sign);
    f.float(bits)
}

fn is_odd(f: &mut Formula<'_>, quadrant: Value) -> Value {
    let low = f.int_op(BinaryOp::And, quadrant, 1);
    let zero = f.int(0, low);
    f.compare(CompareOp::Ne, low, zero)
}

pub(super) fn sin(f: &mut Formula<'_>, x: Value) -> Value {
    let (r, quadrant) = f.reduce_pio2(x);
    sin_of_parts(f, r, quadrant)
}

pub(super) fn cos(f: &mut Formula<'_>, x: Value) -> Value {
    let (r, quadrant) = f.reduce_pio2(x);
    let quadrant = f.int_op(BinaryOp::Add, quadrant, 1);
    sin_of_parts(f, r, quadrant)
}

pub(super) fn tan(f: &mut Formula<'_>, x: Value) -> Value {
    let (r, quadrant) = f.reduce_pio2(x);
    let z = f.mul(r, r);
    let tan = odd(f, r, z, &TAN);
    let minus_tan = f.neg(tan);
    let turned = f.unary(UnaryOp::RecipApprox, minus_tan);
    let is_odd = is_odd(f, quadrant);
    f.select(is_odd, turned, tan)
}
