//! Quotients of integers, defined for every divisor: `x / 0` is 0, and -1 negates.
//!
//! No GPU divides: 32 bits take some twenty instructions and 64 bits a call of about a hundred. Most numbers of 64 bits are sizes and places that fit
//! in 32, so they are divided as such, and all of a thread's once more, behind one branch, if any of them does not fit. Constants are divided by
//! otherwise, see [`crate::passes::expand_division`].

use crate::dtype::Dtype;

use super::elementwise::width;
use super::registers::{Class, Reg, asm};
use super::{Emitter, arithmetic_type};

/// A divisor that can be divided by, and what it stands for.
#[derive(Clone, Copy)]
struct Divisor {
    given: Reg,
    /// 1 where the given one is 0 or -1.
    safe: Reg,
    /// Is it one of these?
    is_special: Reg,
    /// Is it 0?
    is_zero: Reg,
}

impl Emitter<'_> {
    /// The quotients of a thread's elements.
    pub(super) fn quotients(&mut self, dtype: Dtype, pairs: &[(Reg, Reg)]) -> Vec<Reg> {
        let mut divisors: Vec<Divisor> = Vec::new();
        for (_, given) in pairs {
            // That of a whole tile is looked at once.
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
            // Of 0 and -1 only, b + 1 is 1 or 0.
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

    /// Of 64 bits, first as if all numbers had 32.
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
            high_bits = Some(match high_bits {
                None => high,
                Some(bits) => {
                    let any = self.reg(Class::B32);
                    asm!(self, "or.b32 {any}, {bits}, {high}");
                    any
                }
            });
        }
        if let Some(bits) = high_bits {
            let (are_short, skip) = (self.reg(Class::Pred), self.asm.label());
            asm!(self, "setp.eq.u32 {are_short}, {bits}, 0");
            asm!(self, "@{are_short} bra {skip}");
            for (((a, _), divisor), quotient) in pairs.iter().zip(divisors).zip(&quotients) {
                asm!(self, "div.{} {quotient}, {a}, {}", arithmetic_type(dtype), divisor.safe);
            }
            self.asm.place(&skip);
        }
        quotients
    }
}
