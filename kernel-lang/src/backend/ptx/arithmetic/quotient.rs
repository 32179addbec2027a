//! Integer division, defined for every divisor: `x / 0` is 0, and for signed integers `x / -1` is the wrapping negation.
//!
//! GPUs have no integer divide instruction. A 32-bit division takes about twenty instructions, a 64-bit one a call of about a hundred. Most
//! 64-bit values are sizes and indices that fit into 32 bits, so the kernel divides in 32 bits first. If a dividend or divisor of a thread
//! does not fit, one branch repeats all of the thread's divisions of this op in 64 bits. [`crate::passes::divide`] decides which
//! divisions remain.

use crate::dtype::Dtype;

use crate::backend::ptx::arithmetic::elementwise::width;
use crate::backend::ptx::text::registers::{Class, Reg, asm};
use crate::backend::ptx::{Emitter, arithmetic_type};

/// A divisor that is safe for the instruction, and its special cases.
#[derive(Clone, Copy)]
struct Divisor {
    given: Reg,
    /// 1 if the given divisor is 0 or -1, else the given divisor.
    safe: Reg,
    /// Whether the given divisor is one of these.
    is_special: Reg,
    /// Whether the given divisor is 0.
    is_zero: Reg,
}

impl Emitter<'_> {
    /// The quotients of a thread's elements.
    pub(crate) fn quotients(&mut self, dtype: Dtype, pairs: &[(Reg, Reg)]) -> Vec<Reg> {
        let mut divisors: Vec<Divisor> = Vec::new();
        for (_, given) in pairs {
            // A divisor that is the same for consecutive elements is tested once.
            if divisors.last().is_none_or(|last| last.given != *given) {
                let divisor = self.divisor(dtype, *given);
                divisors.push(divisor);
            } else {
                divisors.push(divisors[divisors.len() - 1]);
            }
        }
        let ty = arithmetic_type(dtype);
        let quotients = if width(dtype) == 64 {
            self.wide_quotients(dtype, pairs, &divisors)
        } else {
            let divide = |(&(a, _), divisor): (&(Reg, Reg), &Divisor)| {
                let d = self.reg(Class::B32);
                asm!(self, "div.{ty} {d}, {a}, {}", divisor.safe);
                d
            };
            pairs.iter().zip(&divisors).map(divide).collect()
        };
        let mut results = Vec::new();
        for ((&(a, _), divisor), quotient) in pairs.iter().zip(&divisors).zip(quotients) {
            let (bits, class) = (width(dtype), Class::of(dtype));
            let chosen = self.reg(class);
            if dtype.is_signed_int() {
                let [negated, special] = [0; 2].map(|_| self.reg(class));
                asm!(self, "neg.s{bits} {negated}, {a}");
                asm!(self, "selp.b{bits} {special}, 0, {negated}, {}", divisor.is_zero);
                asm!(self, "selp.b{bits} {chosen}, {special}, {quotient}, {}", divisor.is_special);
            } else {
                asm!(self, "selp.b{bits} {chosen}, 0, {quotient}, {}", divisor.is_zero);
            }
            results.push(self.narrow(dtype, chosen));
        }
        results
    }

    fn divisor(&mut self, dtype: Dtype, given: Reg) -> Divisor {
        let (bits, class) = (width(dtype), Class::of(dtype));
        let [safe, plus_one] = [0; 2].map(|_| self.reg(class));
        let is_zero = self.reg(Class::Pred);
        asm!(self, "setp.eq.s{bits} {is_zero}, {given}, 0");
        let is_special = if dtype.is_signed_int() {
            // b + 1 <= 1, unsigned, exactly for b = 0 and b = -1.
            let is_special = self.reg(Class::Pred);
            asm!(self, "add.s{bits} {plus_one}, {given}, 1");
            asm!(self, "setp.le.u{bits} {is_special}, {plus_one}, 1");
            is_special
        } else {
            is_zero
        };
        asm!(self, "selp.b{bits} {safe}, 1, {given}, {is_special}");
        Divisor { given, safe, is_special, is_zero }
    }

    /// 64-bit quotients: first as if all values had 32 bits.
    fn wide_quotients(&mut self, dtype: Dtype, pairs: &[(Reg, Reg)], divisors: &[Divisor]) -> Vec<Reg> {
        let mut quotients = Vec::new();
        let mut high_bits: Option<Reg> = None;
        for ((a, _), divisor) in pairs.iter().zip(divisors) {
            let [both, quotient] = [0; 2].map(|_| self.reg(Class::B64));
            let [low, high, short, short_divisor, short_quotient] = [0; 5].map(|_| self.reg(Class::B32));
            asm!(self, "or.b64 {both}, {a}, {}", divisor.safe);
            asm!(self, "mov.b64 {{{low}, {high}}}, {both}");
            asm!(self, "cvt.u32.u64 {short}, {a}");
            asm!(self, "cvt.u32.u64 {short_divisor}, {}", divisor.safe);
            asm!(self, "div.u32 {short_quotient}, {short}, {short_divisor}");
            asm!(self, "cvt.u64.u32 {quotient}, {short_quotient}");
            quotients.push(quotient);
            high_bits = Some(self.or(high_bits, high));
        }
        if let Some(bits) = high_bits {
            let (are_short, skip) = (self.reg(Class::Pred), self.asm.label());
            asm!(self, "setp.eq.u32 {are_short}, {bits}, 0");
            asm!(self, "@{are_short} bra {skip}");
            for (((a, _), divisor), quotient) in pairs.iter().zip(divisors).zip(&quotients) {
                asm!(self, "div.{} {quotient}, {a}, {}", arithmetic_type(dtype), divisor.safe);
            }
            self.asm.define_label(&skip);
        }
        quotients
    }
}
