//! Range reduction of angles: `x = n pi/2 + r`, where n is the integer nearest to 2/pi x.
//!
//! Up to [`FAST_LIMIT`] the method is that of Cody and Waite. One fma with 1.5 * 2^23 gives a sum that holds n in its low bits, and n pi/2
//! is subtracted in three parts. All three parts are positive, which preserves the sign of a zero.
//!
//! Beyond the limit the method is that of Payne and Hanek. For a given exponent only 96 bits of 2/pi matter: those whose product with the
//! significand is neither a multiple of 4 nor below 2^-62. An `f32` is never nearer than 2^-29 to a multiple of pi/2, so r has more than 30
//! significant bits. One branch skips this path for all elements of a thread.

use crate::ir::Value;

use crate::backend::ptx::text::registers::{Class, Reg, asm};
use crate::backend::ptx::{Emitter, Lanes};

/// The name of the module's table with the words of 2/pi.
pub(crate) const TABLE_NAME: &str = "two_over_pi";
/// 2/pi: a zero word, then 192 bits of fraction.
pub(crate) const TWO_OVER_PI: [u32; 7] = [0, 0xa2f9_836e, 0x4e44_1529, 0xfc27_57d1, 0xf534_ddc0, 0xdb62_9599, 0x3c43_9041];
/// Three `f32`s whose sum is -pi/2 with an error below 2^-71. Each is the rest of the previous ones, truncated to 24 bits.
const MINUS_PIO2: [u32; 3] = [0xbfc9_0fda, 0xb3a2_2168, 0xa7c2_34c4];
/// 2/pi as `f32`.
const TWO_OVER_PI_F32: u32 = 0x3f22_f983;
/// The largest |x| of the fast path: n stays below 2^16.1, so n times the first part of pi/2 is exact in the fma.
const FAST_LIMIT: f32 = 105_615.0;
/// 1.5 * 2^23: a sum with it is rounded to an integer.
const TO_INTEGER: u32 = 0x4b40_0000;
/// pi/2 * 2^-64 as `f64`: the value of one unit of the fraction.
const FRACTION_UNIT: u64 = 0x3bf9_21fb_5444_2d18;

/// The result of the fast path for one angle.
struct Reduced {
    x: Reg,
    remainder: Reg,
    quadrant: Reg,
    is_large: Reg,
}

impl Emitter<'_> {
    /// Splits angles into a remainder in [-pi/4, pi/4] and a multiple of pi/2.
    pub(crate) fn reduce_pio2(&mut self, x: Value, remainder: Value, quadrant: Value) {
        let lanes = self.lanes(x);
        let is_splat = matches!(lanes, Lanes::Splat(_));
        let count = if is_splat { 1 } else { self.lane_count(x) };
        let reduced: Vec<Reduced> = (0..count).map(|register| self.reduce_small(lanes.get(register))).collect();
        let any = reduced.iter().map(|one| one.is_large).reduce(|any, large| {
            let both = self.reg(Class::Pred);
            asm!(self, "or.pred {both}, {any}, {large}");
            both
        });
        if let Some(any) = any {
            let skip = self.asm.label();
            asm!(self, "@!{any} bra {skip}");
            reduced.iter().for_each(|one| self.reduce_large(one));
            self.asm.define_label(&skip);
            self.uses_two_over_pi = true;
        }
        let wrap = |regs: Vec<Reg>| if is_splat { Lanes::Splat(regs[0]) } else { Lanes::Each(regs) };
        self.define(remainder, wrap(reduced.iter().map(|one| one.remainder).collect()));
        self.define(quadrant, wrap(reduced.iter().map(|one| one.quadrant).collect()));
    }

    fn reduce_small(&mut self, x: Reg) -> Reduced {
        let [shifted, n, magnitude] = [0; 3].map(|_| self.reg(Class::F32));
        asm!(self, "fma.rn.f32 {shifted}, {x}, 0f{TWO_OVER_PI_F32:08X}, 0f{TO_INTEGER:08X}");
        asm!(self, "sub.rn.f32 {n}, {shifted}, 0f{TO_INTEGER:08X}");
        let mut remainder = x;
        for part in MINUS_PIO2 {
            let less = self.reg(Class::F32);
            asm!(self, "fma.rn.f32 {less}, {n}, 0f{part:08X}, {remainder}");
            remainder = less;
        }
        let (bits, quadrant, is_large) = (self.reg(Class::B32), self.reg(Class::B32), self.reg(Class::Pred));
        asm!(self, "mov.b32 {bits}, {shifted}");
        asm!(self, "and.b32 {quadrant}, {bits}, 3");
        asm!(self, "abs.f32 {magnitude}, {x}");
        // NaN counts as large.
        asm!(self, "setp.gtu.f32 {is_large}, {magnitude}, 0f{:08X}", FAST_LIMIT.to_bits());
        Reduced { x, remainder, quadrant, is_large }
    }

    /// Replaces the results if the angle is large.
    fn reduce_large(&mut self, one: &Reduced) {
        let Reduced { x, remainder, quadrant, is_large } = one;
        let [bits, shifted, significand, exponent, start] = [0; 5].map(|_| self.reg(Class::B32));
        asm!(self, "mov.b32 {bits}, {x}");
        // |x| = significand 2^(exponent - 158). The window begins `exponent - 128` bits into the table.
        asm!(self, "shl.b32 {shifted}, {bits}, 8");
        asm!(self, "or.b32 {significand}, {shifted}, 0x80000000");
        asm!(self, "bfe.u32 {exponent}, {bits}, 23, 8");
        // Small angles of other threads or registers take this path too, so their window must also lie in the table.
        asm!(self, "max.u32 {start}, {exponent}, 128");
        let [from, limited, word] = [0; 3].map(|_| self.reg(Class::B32));
        asm!(self, "sub.s32 {from}, {start}, 128");
        asm!(self, "min.u32 {limited}, {from}, 126");
        asm!(self, "shr.u32 {word}, {limited}, 5");
        let (table, address) = (self.reg(Class::B64), self.reg(Class::B64));
        asm!(self, "mov.u64 {table}, {TABLE_NAME}");
        asm!(self, "mad.wide.u32 {address}, {word}, 4, {table}");
        let words = [0; 4].map(|_| self.reg(Class::B32));
        for (index, word) in words.iter().enumerate() {
            asm!(self, "ld.const.u32 {word}, [{address}+{}]", 4 * index);
        }
        let window: Vec<Reg> = words
            .windows(2)
            .map(|pair| {
                let part = self.reg(Class::B32);
                asm!(self, "shf.l.wrap.b32 {part}, {}, {}, {limited}", pair[1], pair[0]);
                part
            })
            .collect();
        // The upper 64 of the low 96 bits of the product: two integer bits and 62 fraction bits.
        let [high, high_shifted, middle, low, low_shifted, sum, product] = [0; 7].map(|_| self.reg(Class::B64));
        asm!(self, "mul.wide.u32 {high}, {significand}, {}", window[0]);
        asm!(self, "shl.b64 {high_shifted}, {high}, 32");
        asm!(self, "mul.wide.u32 {middle}, {significand}, {}", window[1]);
        asm!(self, "mul.wide.u32 {low}, {significand}, {}", window[2]);
        asm!(self, "shr.u64 {low_shifted}, {low}, 32");
        asm!(self, "add.s64 {sum}, {high_shifted}, {middle}");
        asm!(self, "add.s64 {product}, {sum}, {low_shifted}");
        let [top, half_bit, half, whole, fraction] = [0; 5].map(|_| self.reg(Class::B64));
        asm!(self, "shr.u64 {top}, {product}, 62");
        asm!(self, "shr.u64 {half_bit}, {product}, 61");
        asm!(self, "and.b64 {half}, {half_bit}, 1");
        asm!(self, "add.s64 {whole}, {top}, {half}");
        asm!(self, "shl.b64 {fraction}, {product}, 2");
        let (wide, scaled) = (self.reg(Class::F64), self.reg(Class::F64));
        asm!(self, "cvt.rn.f64.s64 {wide}, {fraction}");
        asm!(self, "mul.rn.f64 {scaled}, {wide}, 0d{FRACTION_UNIT:016X}");
        let [positive, negative, signed, r] = [0; 4].map(|_| self.reg(Class::F32));
        asm!(self, "cvt.rn.f32.f64 {positive}, {scaled}");
        asm!(self, "neg.f32 {negative}, {positive}");
        let (is_negative, is_finite) = (self.reg(Class::Pred), self.reg(Class::Pred));
        asm!(self, "setp.lt.s32 {is_negative}, {bits}, 0");
        asm!(self, "selp.f32 {signed}, {negative}, {positive}, {is_negative}");
        asm!(self, "setp.ne.s32 {is_finite}, {exponent}, 255");
        asm!(self, "selp.f32 {r}, {signed}, 0f7FFFFFFF, {is_finite}");
        let [n, minus_n, either, quarter_turns] = [0; 4].map(|_| self.reg(Class::B32));
        asm!(self, "cvt.u32.u64 {n}, {whole}");
        asm!(self, "neg.s32 {minus_n}, {n}");
        asm!(self, "selp.b32 {either}, {minus_n}, {n}, {is_negative}");
        asm!(self, "and.b32 {quarter_turns}, {either}, 3");
        asm!(self, "selp.f32 {remainder}, {r}, {remainder}, {is_large}");
        asm!(self, "selp.b32 {quadrant}, {quarter_turns}, {quadrant}, {is_large}");
    }
}
