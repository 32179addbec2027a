//! Float remainder: an exact `%`, like C's `fmod`, by long division of the significands.
//!
//! Let |x| = m 2^e and |y| = n 2^f with integers m and n, and e >= f. The remainder is (m 2^(e - f) mod n) 2^f. A significand has 53 bits,
//! so a step shifts by 11 bits and divides 64-bit integers. Every result is representable, so no step rounds.

use crate::backend::ptx::Emitter;
use crate::backend::ptx::text::registers::{Class, Reg, asm};

impl Emitter<'_> {
    /// `a % b` of two `f64`.
    pub(crate) fn remainder(&mut self, a: Reg, b: Reg) -> Reg {
        let [magnitude, divisor, result] = [0; 3].map(|_| self.reg(Class::F64));
        asm!(self, "abs.f64 {magnitude}, {a}");
        asm!(self, "abs.f64 {divisor}, {b}");
        // The common case, and x % inf: the result is x.
        asm!(self, "mov.f64 {result}, {a}");
        let (done, is_small) = (self.asm.label(), self.reg(Class::Pred));
        asm!(self, "setp.lt.f64 {is_small}, {magnitude}, {divisor}");
        asm!(self, "@{is_small} bra {done}");
        // x % 0, inf % y and NaN: the result is NaN.
        asm!(self, "mov.f64 {result}, 0d7FF8000000000000");
        let [is_zero, is_infinite, is_unordered] = [0; 3].map(|_| self.reg(Class::Pred));
        asm!(self, "setp.equ.f64 {is_zero}, {divisor}, 0d0000000000000000");
        asm!(self, "@{is_zero} bra {done}");
        asm!(self, "setp.equ.f64 {is_infinite}, {magnitude}, 0d7FF0000000000000");
        asm!(self, "@{is_infinite} bra {done}");
        asm!(self, "setp.nan.f64 {is_unordered}, {magnitude}, {divisor}");
        asm!(self, "@{is_unordered} bra {done}");
        let (from, left) = self.significand(magnitude);
        let (to, modulus) = self.significand(divisor);
        let (gap, step) = (self.reg(Class::B32), self.reg(Class::B32));
        asm!(self, "sub.s32 {gap}, {from}, {to}");
        asm!(self, "rem.u64 {left}, {left}, {modulus}");
        let (again, out, is_out) = (self.asm.label(), self.asm.label(), self.reg(Class::Pred));
        self.asm.define_label(&again);
        asm!(self, "setp.le.s32 {is_out}, {gap}, 0");
        asm!(self, "@{is_out} bra {out}");
        asm!(self, "min.s32 {step}, {gap}, 11");
        asm!(self, "shl.b64 {left}, {left}, {step}");
        asm!(self, "rem.u64 {left}, {left}, {modulus}");
        asm!(self, "sub.s32 {gap}, {gap}, {step}");
        asm!(self, "bra {again}");
        self.asm.define_label(&out);
        self.scale_to(result, left, to, a);
        self.asm.define_label(&done);
        result
    }

    /// The biased exponent, at least 1, and the significand of a finite float. The value is significand 2^(exponent - 1075).
    fn significand(&mut self, x: Reg) -> (Reg, Reg) {
        let [bits, fraction, leading, significand, field] = [0; 5].map(|_| self.reg(Class::B64));
        let (is_normal, narrow, exponent) = (self.reg(Class::Pred), self.reg(Class::B32), self.reg(Class::B32));
        asm!(self, "mov.b64 {bits}, {x}");
        asm!(self, "and.b64 {fraction}, {bits}, 0xfffffffffffff");
        asm!(self, "shr.u64 {field}, {bits}, 52");
        asm!(self, "cvt.u32.u64 {narrow}, {field}");
        asm!(self, "max.u32 {exponent}, {narrow}, 1");
        asm!(self, "setp.ne.s32 {is_normal}, {narrow}, 0");
        asm!(self, "selp.b64 {leading}, 0x10000000000000, 0, {is_normal}");
        asm!(self, "or.b64 {significand}, {fraction}, {leading}");
        (exponent, significand)
    }

    /// `result` = significand 2^(exponent - 1075) with the sign of `sign`. The scaling uses two powers of two, because one of this size may
    /// be subnormal.
    fn scale_to(&mut self, result: Reg, significand: Reg, exponent: Reg, sign: Reg) {
        let [power, half, rest] = [0; 3].map(|_| self.reg(Class::B32));
        asm!(self, "sub.s32 {power}, {exponent}, 1075");
        asm!(self, "shr.s32 {half}, {power}, 1");
        asm!(self, "sub.s32 {rest}, {power}, {half}");
        let float = self.reg(Class::F64);
        asm!(self, "cvt.rn.f64.u64 {float}, {significand}");
        let mut scaled = float;
        for part in [half, rest] {
            let (biased, high) = (self.reg(Class::B32), self.reg(Class::B32));
            let [factor, product] = [0; 2].map(|_| self.reg(Class::F64));
            asm!(self, "add.s32 {biased}, {part}, 1023");
            asm!(self, "shl.b32 {high}, {biased}, 20");
            asm!(self, "mov.b64 {factor}, {{0, {high}}}");
            asm!(self, "mul.rn.f64 {product}, {scaled}, {factor}");
            scaled = product;
        }
        asm!(self, "copysign.f64 {result}, {sign}, {scaled}");
    }
}
