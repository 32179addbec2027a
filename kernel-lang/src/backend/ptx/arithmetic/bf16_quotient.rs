//! Quotients of `f32` that the kernel only rounds to `bf16`, by a divisor that several of a thread's elements share. The `bf16` is the one of
//! the correctly rounded quotient.
//!
//! A product with the reciprocal is within two ulp of the correctly rounded quotient, and `bf16` has 16 bits less. So both round to one
//! `bf16`, unless a number halfway between two `bf16` is as near. A few instructions test this for several of a thread's quotients, and a branch
//! repeats their divisions by `div.rn`: in a warp with 512 quotients, about one time in 25.
//!
//! # Proof
//!
//! Let `s` be in `2^-126 ..= 2^125`, so that its reciprocal is normal, and `Q = x / s`. The reciprocal `r` has a relative error of
//! `2^-24 (1 + 2^-20)` ([`Emitter::reciprocal`]), so `x * r` differs from `Q` by one ulp, its rounding `q` by 1.5 ulp, and the correctly
//! rounded quotient from `q` by two ulp, up to that `2^-20`: as both are floats, by at most two steps. This also holds if they are subnormal,
//! because the exponents of `f32` and `bf16` have the same range. A number halfway between two `bf16` ends with the bits `0x8000`, as does the
//! least number that rounds to infinity. So if the low half of `q` is not in `0x7ffe ..= 0x8002`, no such number is between both quotients or
//! equal to one. Infinities, zeros and NaN propagate.

use rustc_hash::FxHashMap;

use crate::dtype::Dtype;
use crate::ir::{Function, Handle, Op, Value};

use crate::backend::ptx::Emitter;
use crate::backend::ptx::text::registers::{Class, Reg, asm};

/// The steps between a product with the reciprocal and the correctly rounded quotient.
const STEPS: u32 = 2;

/// The quotients that one branch divides again. Until then, their dividends occupy registers, too.
const TOGETHER: usize = 8;

/// The low half of a float that lies halfway between two `bf16`.
const HALFWAY: u32 = 0x8000;

/// By value: whether casts to `bf16` are the only uses of a quotient.
pub(crate) fn rounded_quotients(func: &Function) -> Vec<bool> {
    let (mut casts, mut others) = (vec![false; func.value_count()], vec![false; func.value_count()]);
    // The values that an `if_any` yields are used where its results are.
    let mut forwarded: FxHashMap<Value, Vec<Value>> = FxHashMap::default();
    for inst in func.all_insts() {
        let data = func.inst(inst);
        if let Op::IfAny { body, .. } = data.op {
            for (inner, result) in func.yielded(body).iter().zip(&data.results) {
                forwarded.entry(*inner).or_default().push(*result);
            }
        }
    }
    for inst in func.all_insts() {
        let data = func.inst(inst);
        let is_rounding = matches!(data.op, Op::Cast { .. }) && func.ty(data.results[0]).dtype() == Dtype::Bf16;
        data.op.for_each_operand(&mut |value| {
            if !(data.op.is_terminator() && forwarded.contains_key(&value)) {
                let uses = if is_rounding { &mut casts } else { &mut others };
                uses[value.index()] = true;
            }
        });
    }
    for (inner, results) in forwarded {
        for result in results {
            casts[inner.index()] |= casts[result.index()];
            others[inner.index()] |= others[result.index()];
        }
    }
    casts.into_iter().zip(others).map(|(cast, other)| cast && !other).collect()
}

impl Emitter<'_> {
    /// Computes quotients by `s` that round to the same `bf16` as the correctly rounded ones. The pairs are dividends and quotients.
    pub(super) fn rounded_quotients(&mut self, s: Reg, elements: &[(Reg, Reg)]) {
        let (in_range, r) = match self.prepared(s, true) {
            Some(divisor) => (divisor.in_range, divisor.reciprocal),
            None => (self.divisor_in_range(None, s), self.reciprocal(s)),
        };
        for part in elements.chunks(TOGETHER) {
            let mut distances = Vec::new();
            for (x, quotient) in part {
                asm!(self, "mul.rn.f32 {quotient}, {x}, {r}");
                let [bits, distance] = [0; 2].map(|_| self.reg(Class::B32));
                asm!(self, "mov.b32 {bits}, {quotient}");
                asm!(self, "mad.lo.u32 {distance}, {bits}, {:#x}, {:#x}", 1 << 16, (HALFWAY - STEPS).wrapping_neg() << 16);
                distances.push(distance);
            }
            let least = self.extreme("min.u32", Class::B32, distances);
            let holds = self.also(Some(in_range), "gt", "u32", least, format!("{:#x}", (2 * STEPS) << 16));
            let done = self.asm.label();
            asm!(self, "@{holds} bra {done}");
            for (x, quotient) in part {
                asm!(self, "div.rn.f32 {quotient}, {x}, {s}");
            }
            self.asm.define_label(&done);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether the test takes `q` for a quotient.
    fn is_far(q: f32) -> bool {
        (q.to_bits() << 16).wrapping_add((HALFWAY - STEPS).wrapping_neg() << 16) > (2 * STEPS) << 16
    }

    /// All low halves, with exponents and significands of all kinds: where the test lets a float pass, floats at most two steps away round alike.
    #[test]
    fn floats_two_steps_away_round_alike() {
        for high in (0..0x7f80u32).step_by(1009).chain([0, 1, 0x7f, 0x80, 0x7f7f]) {
            let mut passed = 0;
            for low in 0..1 << 16 {
                let q = f32::from_bits((high << 16) | low);
                if !is_far(q) {
                    continue;
                }
                passed += 1;
                for step in 0..=2 {
                    let above = (q.to_bits() + step).min(f32::INFINITY.to_bits());
                    let near = [above, q.to_bits().saturating_sub(step)].map(f32::from_bits);
                    assert_eq!(near.map(half::bf16::from_f32), [half::bf16::from_f32(q); 2], "{q:e}");
                }
            }
            assert_eq!(passed, (1 << 16) - 5);
        }
    }
}
