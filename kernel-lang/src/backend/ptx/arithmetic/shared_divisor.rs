//! Division of `f32` by a divisor that several of a thread's elements share, such as a scale of a row. Every quotient is the correctly
//! rounded one.
//!
//! `div.rn` takes about eleven instructions, one of which runs at a fraction of the usual rate, and a call for special values. The
//! reciprocal `r` of a shared divisor `s` is computed once, and an element then takes four to six instructions:
//!
//! ```text
//! q0 = x * r               within 1.5 ulp of x / s
//! e  = fma(q0, s, -x)      the residual
//! q  = fma(-e, r, q0)      the quotient
//! ```
//!
//! # Proof
//!
//! Let `s` and `x` be integers `S` and `X` of 24 bits, scaled by a power of two such that the quotient `Q` lies in `[2^23, 2^24)`; an ulp of
//! the quotient is then 1. With exact scaling, `q` is `Q` plus an error, rounded once. The error is at most `|q0 - Q| * |1 - r * s|`, plus
//! `1 / S` if `e` has 25 bits. A quotient differs from a number halfway between two floats by a multiple `j` of `1 / (2 * S)`, and never by
//! 0. So `q` can only be wrong for small `j`, and each `j` and `S` leave one `X` modulo `S`. The test of this module tries all of these
//! pairs: none fails. Two things make the proof independent of the hardware's reciprocal: it holds for every result of the instruction within
//! its documented error, and [`Emitter::reciprocal`] ends with a step whose result does not depend on that error, with few exceptions.
//!
//! # Ranges
//!
//! The scaling is exact if neither `q` nor `e` underflows, and nothing overflows. The kernel tests this for all elements of the thread; if
//! the test fails, one branch repeats the thread's divisions by `div.rn`.
//!
//! | value | range | reason |
//! |---|---|---|
//! | `s` | `2^-126 ..= 2^125` | `s` and `r` are normal |
//! | `s` | positive | a residual of zero is +0; for `s < 0` it would turn a quotient of -0.0 into +0.0 |
//! | `x` | 0, or `>= 2^-100` | the last bit of `e` is at least `2^-149` |
//! | `x` | 0, or `>= s * 2^-124` | `q` is normal |
//! | `x` | `< s * 2^126` | `q0` is finite |
//!
//! The last row needs no test if the divisor is computed from the largest magnitude of the dividends, as in quantisation ([`magnitudes::are_scaled`]).
//!
//! NaN needs no test, as it propagates. A value that was `f16` needs no test either: it is 0, or at least `2^-24` and less than `2^16`, or
//! infinite. For an infinite value, the residual is NaN. The maximum with the least float makes it finite, and the quotient is `q0`.

use rustc_hash::FxHashMap;
use std::fmt::Display;

use crate::analysis::magnitudes;
use crate::dtype::Dtype;
use crate::ir::{BinaryOp, ConstExpr, Function, Handle, Op, Region, Value};

use crate::backend::ptx::text::registers::{Class, Reg, asm};
use crate::backend::ptx::{Emitter, Lanes, Source};

/// With fewer elements, the reciprocal and the test take longer than they save.
const LEAST_SHARERS: usize = 4;

/// What is known of dividends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Dividends {
    /// Nothing.
    Any,
    /// They are values of `f16`.
    Halves,
    /// No magnitude is larger than the divisor times a known constant, because the divisor is computed from the largest of them.
    Scaled,
    /// They are 1: a reciprocal takes fewer instructions than a division.
    Ones,
}

impl Dividends {
    pub(crate) fn of(func: &Function, dividend: Value, divisor: Value) -> Dividends {
        match func.def_op(func.unmoved(dividend)) {
            Some(Op::Const { value: ConstExpr::Float(1.0) | ConstExpr::Int(1) }) => Dividends::Ones,
            Some(Op::Cast { x }) if func.ty(*x).dtype() == Dtype::F16 => Dividends::Halves,
            _ if magnitudes::are_scaled(func, dividend, divisor) => Dividends::Scaled,
            _ => Dividends::Any,
        }
    }

    /// May they be any floats?
    fn are_floats(self) -> bool {
        matches!(self, Dividends::Any | Dividends::Scaled)
    }
}

/// What divisions by a register share: see [`Emitter::prepare_divisors`].
#[derive(Clone, Copy)]
pub(crate) struct Divisor {
    pub(super) in_range: Reg,
    /// The least magnitude of a dividend but 0, and one that all are below. Quotients that are only rounded to `bf16` need none.
    limits: Option<[Reg; 2]>,
    pub(super) reciprocal: Reg,
}

/// The elements that are divided by one register.
struct Sharers {
    divisor: Reg,
    elements: Vec<usize>,
}

impl Emitter<'_> {
    /// The `f32` quotients of a thread's elements. If they are only rounded to `bf16`, they may be others that round alike.
    pub(crate) fn float_quotients(&mut self, pairs: &[(Reg, Reg)], dividends: Dividends, are_rounded: bool) -> Vec<Reg> {
        let quotients: Vec<Reg> = pairs.iter().map(|_| self.reg(Class::F32)).collect();
        let are_rounded = are_rounded && dividends.are_floats();
        let is_prepared = |group: &Sharers| dividends.are_floats() && self.prepared(group.divisor, are_rounded).is_some();
        let (groups, alone): (Vec<Sharers>, Vec<Sharers>) =
            sharers(pairs).into_iter().partition(|group| group.elements.len() >= LEAST_SHARERS || is_prepared(group));
        let divide = |emitter: &mut Self, groups: &[Sharers]| {
            for element in groups.iter().flat_map(|group| &group.elements) {
                let ((x, s), quotient) = (pairs[*element], quotients[*element]);
                match dividends {
                    Dividends::Ones => asm!(emitter, "rcp.rn.f32 {quotient}, {s}"),
                    _ => asm!(emitter, "div.rn.f32 {quotient}, {x}, {s}"),
                }
            }
        };
        divide(self, &alone);

        let mut holds: Option<Reg> = None;
        if are_rounded {
            for group in &groups {
                let elements: Vec<(Reg, Reg)> = group.elements.iter().map(|element| (pairs[*element].0, quotients[*element])).collect();
                self.rounded_quotients(group.divisor, &elements);
            }
            return quotients;
        }
        for group in &groups {
            let elements: Vec<Reg> = group.elements.iter().map(|element| pairs[*element].0).collect();
            holds = Some(self.is_in_range(holds, group.divisor, &elements, dividends));
        }
        if let Some(holds) = holds {
            let [slow, done] = [0; 2].map(|_| self.asm.label());
            asm!(self, "@!{holds} bra {slow}");
            for group in &groups {
                let s = group.divisor;
                let r = self.prepared(s, false).map_or_else(|| self.reciprocal(s), |divisor| divisor.reciprocal);
                let minus_r = self.reg(Class::F32);
                asm!(self, "neg.f32 {minus_r}, {r}");
                for element in &group.elements {
                    let x = pairs[*element].0;
                    let [first, minus_x, residual] = [0; 3].map(|_| self.reg(Class::F32));
                    asm!(self, "mul.rn.f32 {first}, {x}, {r}");
                    asm!(self, "neg.f32 {minus_x}, {x}");
                    asm!(self, "fma.rn.f32 {residual}, {first}, {s}, {minus_x}");
                    let residual = match dividends {
                        Dividends::Any | Dividends::Scaled | Dividends::Ones => residual,
                        Dividends::Halves => {
                            let finite = self.reg(Class::F32);
                            asm!(self, "max.f32 {finite}, {residual}, {}", literal(f32::MIN));
                            finite
                        }
                    };
                    asm!(self, "fma.rn.f32 {}, {residual}, {minus_r}, {first}", quotients[*element]);
                }
            }
            asm!(self, "bra {done}");
            self.asm.define_label(&slow);
            divide(self, &groups);
            self.asm.define_label(&done);
        }
        quotients
    }

    /// Prepares the divisors of a region that is emitted several times.
    pub(in crate::backend::ptx) fn prepare_divisors(&mut self, body: Region) {
        for inst in &self.func.region(body).insts {
            let Op::Binary { op: BinaryOp::Div, lhs, rhs } = self.func.inst(*inst).op else { continue };
            let result = self.func.result(*inst);
            let is_plain = self.func.ty(result).dtype() == Dtype::F32 && Dividends::of(self.func, lhs, rhs).are_floats();
            if let (true, Some(Source::Registers(Lanes::Splat(s)))) = (is_plain, self.sources[rhs].clone()) {
                let is_rounded = self.rounded_quotients[result.index()];
                if self.prepared(s, is_rounded).is_some() {
                    continue;
                }
                let limits = (!is_rounded).then(|| self.limits(s));
                let (in_range, reciprocal) = (self.divisor_in_range(None, s), self.reciprocal(s));
                let divisors = self.divisors.last_mut().expect("a kernel is a region");
                divisors.insert((s, is_rounded), Divisor { in_range, limits, reciprocal });
            }
        }
    }

    /// A divisor that was prepared.
    pub(super) fn prepared(&self, s: Reg, is_rounded: bool) -> Option<Divisor> {
        self.divisors.iter().rev().find_map(|divisors| divisors.get(&(s, is_rounded))).copied()
    }

    /// The reciprocal of a divisor in range. Its last rounding is to nearest, after a step of third order. The rounding up in that step
    /// decides the one reciprocal that is next to a number halfway between two floats, that of `2 - 2^-23`.
    pub(super) fn reciprocal(&mut self, s: Reg) -> Reg {
        let [approximation, minus_s, error, series, r] = [0; 5].map(|_| self.reg(Class::F32));
        asm!(self, "rcp.approx.ftz.f32 {approximation}, {s}");
        asm!(self, "neg.f32 {minus_s}, {s}");
        asm!(self, "fma.rn.f32 {error}, {approximation}, {minus_s}, {}", literal(1.0));
        asm!(self, "fma.rp.f32 {series}, {error}, {error}, {error}");
        asm!(self, "fma.rn.f32 {r}, {approximation}, {series}, {approximation}");
        r
    }

    /// Whether the divisor and all dividends are in the ranges above, and `holds` holds.
    fn is_in_range(&mut self, mut holds: Option<Reg>, s: Reg, elements: &[Reg], dividends: Dividends) -> Reg {
        if dividends == Dividends::Halves {
            let above = self.also(holds, "ge", "f32", s, literal(power(-100)));
            return self.also(Some(above), "le", "f32", s, literal(power(100)));
        }
        let (in_range, [low, high]) = match self.prepared(s, false) {
            Some(Divisor { in_range, limits: Some(limits), .. }) => {
                let both = holds.map(|holds| {
                    let both = self.reg(Class::Pred);
                    asm!(self, "and.pred {both}, {holds}, {in_range}");
                    both
                });
                (both.unwrap_or(in_range), limits)
            }
            _ => {
                let limits = self.limits(s);
                (self.divisor_in_range(holds, s), limits)
            }
        };
        holds = Some(in_range);

        if dividends != Dividends::Scaled {
            let magnitudes: Vec<Reg> = elements
                .iter()
                .map(|x| {
                    let magnitude = self.reg(Class::F32);
                    asm!(self, "abs.f32 {magnitude}, {x}");
                    magnitude
                })
                .collect();
            // `max.f32` ignores NaN.
            let largest = self.extreme("max.f32", Class::F32, magnitudes);
            holds = Some(self.also(holds, "lt", "f32", largest, high));
        }

        let ranks: Vec<Reg> = elements.iter().map(|x| self.rank(*x)).collect();
        let least = self.extreme("min.u32", Class::B32, ranks);
        let low = self.rank(low);
        self.also(holds, "ge", "u32", least, low)
    }

    /// Whether a divisor is in its range, and `holds` holds.
    pub(super) fn divisor_in_range(&mut self, holds: Option<Reg>, s: Reg) -> Reg {
        let above = self.also(holds, "ge", "f32", s, literal(power(-126)));
        self.also(Some(above), "le", "f32", s, literal(power(125)))
    }

    /// The least magnitude of a dividend but 0, and one that all are below.
    fn limits(&mut self, s: Reg) -> [Reg; 2] {
        let [scaled, low, high] = [0; 3].map(|_| self.reg(Class::F32));
        asm!(self, "mul.rn.f32 {scaled}, {s}, {}", literal(power(-124)));
        asm!(self, "max.f32 {low}, {scaled}, {}", literal(power(-100)));
        asm!(self, "mul.rn.f32 {high}, {s}, {}", literal(power(126)));
        [low, high]
    }

    /// An integer that orders floats by their magnitudes, and 0 above all others.
    fn rank(&mut self, x: Reg) -> Reg {
        let [bits, rank, twice] = [0; 3].map(|_| self.reg(Class::B32));
        asm!(self, "mov.b32 {bits}, {x}");
        asm!(self, "add.s32 {twice}, {bits}, {bits}");
        asm!(self, "add.s32 {rank}, {twice}, -1");
        rank
    }

    /// Whether the comparison and `holds` hold.
    pub(super) fn also(&mut self, holds: Option<Reg>, comparison: &str, ty: &str, a: Reg, b: impl Display) -> Reg {
        let d = self.reg(Class::Pred);
        match holds {
            Some(holds) => asm!(self, "setp.{comparison}.and.{ty} {d}, {a}, {b}, {holds}"),
            None => asm!(self, "setp.{comparison}.{ty} {d}, {a}, {b}"),
        }
        d
    }

    /// The minimum or maximum, by a tree of threes: some targets have an integer instruction with three operands.
    pub(super) fn extreme(&mut self, instruction: &str, class: Class, mut all: Vec<Reg>) -> Reg {
        while all.len() > 1 {
            let parts = all.chunks(3).map(|part| {
                part.iter().copied().reduce(|a, b| {
                    let d = self.reg(class);
                    asm!(self, "{instruction} {d}, {a}, {b}");
                    d
                })
            });
            all = parts.flatten().collect();
        }
        all[0]
    }
}

/// The elements of a thread, by their divisors.
fn sharers(pairs: &[(Reg, Reg)]) -> Vec<Sharers> {
    let mut groups: Vec<Sharers> = Vec::new();
    let mut group_of: FxHashMap<Reg, usize> = FxHashMap::default();
    for (element, (_, divisor)) in pairs.iter().enumerate() {
        let group = *group_of.entry(*divisor).or_insert(groups.len());
        if group == groups.len() {
            groups.push(Sharers { divisor: *divisor, elements: Vec::new() });
        }
        groups[group].elements.push(element);
    }
    groups
}

fn power(exponent: i32) -> f32 {
    2f32.powi(exponent)
}

/// The literal of a float.
pub(super) fn literal(value: f32) -> String {
    format!("0f{:08X}", value.to_bits())
}

#[cfg(test)]
mod tests {
    use super::{Dividends, power};
    use crate::analysis::magnitudes::MOST_BITS;

    /// `fma.rp`, if the exact result fits in `f64`.
    fn fma_up(a: f32, b: f32, c: f32) -> f32 {
        let exact = f64::from(a) * f64::from(b) + f64::from(c);
        let nearest = exact as f32;
        if f64::from(nearest) < exact { nearest.next_up() } else { nearest }
    }

    fn reciprocal(s: f32, approximation: f32) -> f32 {
        let error = approximation.mul_add(-s, 1.0);
        approximation.mul_add(fma_up(error, error, error), approximation)
    }

    fn quotient(x: f32, s: f32, r: f32, dividends: Dividends) -> f32 {
        let first = x * r;
        let residual = first.mul_add(s, -x);
        let residual = if dividends == Dividends::Halves { residual.max(f32::MIN) } else { residual };
        residual.mul_add(-r, first)
    }

    fn is_in_range(x: f32, s: f32, dividends: Dividends) -> bool {
        let rank = |x: f32| x.to_bits().wrapping_mul(2).wrapping_sub(1);
        match dividends {
            Dividends::Halves => s >= power(-100) && s <= power(100),
            Dividends::Any | Dividends::Scaled | Dividends::Ones => {
                let low = (s * power(-124)).max(power(-100));
                let is_below = dividends == Dividends::Scaled || x.abs().max(0.0) < s * power(126);
                s >= power(-126) && s <= power(125) && is_below && rank(x) >= rank(low)
            }
        }
    }

    fn check(x: f32, s: f32, r: f32, dividends: Dividends) {
        let (found, wanted) = (quotient(x, s, r, dividends), x / s);
        let is_equal = found.to_bits() == wanted.to_bits() || found.is_nan() && wanted.is_nan();
        assert!(is_equal, "{x:e} / {s:e} is {wanted:e}, not {found:e}, with the reciprocal {r:e}");
    }

    /// The reciprocals of a divisor that follow from an approximation with an error of at most one ulp. Below a power of two, an ulp is two
    /// steps.
    fn reciprocals(s: f32) -> Vec<f32> {
        let nearest = 1.0 / s;
        let near = (-2..=2).map(|steps| f32::from_bits(nearest.to_bits().wrapping_add_signed(steps)));
        let mut all: Vec<f32> = near.map(|approximation| reciprocal(s, approximation)).collect();
        all.dedup();
        all
    }

    /// The number `y < s` with `y * 2^n = j` modulo `s`, which is odd.
    fn divided_by_power(j: u64, n: u32, s: u64) -> u64 {
        (0..n).fold(j % s, |y, _| if y % 2 == 0 { y / 2 } else { (y + s) / 2 })
    }

    /// The proof in the module's documentation: tests all pairs of significands whose quotient is so close to a number halfway between two
    /// floats that the error matters.
    #[test]
    fn significands_near_midpoints() {
        let scale = power(-23);
        let mut tested = 0;
        for divisor in 1u64 << 23..1 << 24 {
            let s = divisor as f32 * scale;
            for r in reciprocals(s) {
                let relative = (1.0 - f64::from(r) * f64::from(s)).abs();
                let first = 0.5 + f64::from(1 << 24) * relative;
                let rounding = if first * divisor as f64 > f64::from(1 << 24) { 1.0001 } else { 0.0 };
                let most = (2.0 * (first * divisor as f64 * relative + rounding)) as u64;

                let zeros = divisor.trailing_zeros();
                let odd = divisor >> zeros;
                // With the scale 2^power, the quotients of these dividends have 24 bits before the point.
                for (power, dividends) in [(23, divisor..1 << 24), (24, 1 << 23..divisor)] {
                    for j in (1..=most).filter(|j| j % (1 << zeros) == 0) {
                        let least = divided_by_power(j >> zeros, power + 1 - zeros, odd);
                        for least in [least, odd - least] {
                            let skipped = dividends.start.saturating_sub(least).div_ceil(odd);
                            for x in (least + skipped * odd..dividends.end).step_by(odd as usize) {
                                check(x as f32 * scale, s, r, Dividends::Any);
                                tested += 1;
                            }
                        }
                    }
                }
            }
        }
        assert!(tested > 1_000_000, "{tested}");
    }

    /// Divisors and dividends in and out of range, about its ends, and special ones.
    #[test]
    fn ranges() {
        let mut state = 1u64;
        let mut random = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 32) as u32
        };
        let ends: Vec<f32> =
            [-149, -127, -126, -124, -102, -101, -100, -99, -1, 0, 23, 24, 25, 26, 100, 124, 125, 126, 127].map(power).into();
        let special = [0.0, -0.0, f32::INFINITY, f32::NEG_INFINITY, f32::NAN, f32::MAX, f32::MIN];
        let mut in_range = [0; 3];
        for turn in 0..400_000u32 {
            let mut value = || match random() % 8 {
                0 => special[random() as usize % special.len()],
                1..4 => {
                    let end = ends[random() as usize % ends.len()];
                    f32::from_bits(end.to_bits().wrapping_add_signed(random() as i32 % 4)) * if random() % 4 == 0 { -1.0 } else { 1.0 }
                }
                _ => f32::from_bits(random()),
            };
            let (x, s) = (value(), value());
            // Sometimes a quotient near the ends of its range.
            let x = if turn % 4 == 0 { s * ends[turn as usize / 4 % ends.len()] } else { x };
            // The divisor of an infinite dividend is infinite.
            let scaled = if x.is_infinite() || x.abs() > s * power(MOST_BITS) { s } else { x };
            let half = f32::from(half::f16::from_f32(x));
            for (dividends, x) in [(Dividends::Any, x), (Dividends::Halves, half), (Dividends::Scaled, scaled)] {
                if is_in_range(x, s, dividends) {
                    in_range[dividends as usize] += 1;
                    reciprocals(s).into_iter().for_each(|r| check(x, s, r, dividends));
                }
            }
        }
        assert!(in_range.iter().all(|tested| *tested > 50_000), "{in_range:?}");
    }
}
