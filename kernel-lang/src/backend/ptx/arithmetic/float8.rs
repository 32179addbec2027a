//! 8-bit floats: conversions between 8-bit floats, zero-extended in 32-bit registers, and `f32`. They use the target's instructions, or
//! integer arithmetic that gives the same bits.

use crate::dtype::Dtype;
use crate::float8::{Format, NAN};
use crate::target::Target;

use crate::backend::ptx::Emitter;
use crate::backend::ptx::text::registers::{Class, Reg, asm};

impl Emitter<'_> {
    /// The `f32` with the same value.
    pub(crate) fn widen_float8(&mut self, x: Reg, format: Format) -> Reg {
        let d = self.reg(Class::F32);
        if self.target.ask(Target::has_float8_conversions) {
            let (pair, both, half) = (self.reg(Class::B16), self.reg(Class::B32), self.reg(Class::B16));
            asm!(self, "cvt.u16.u32 {pair}, {x}");
            asm!(self, "cvt.rn.f16x2.{}x2 {both}, {pair}", name(format));
            asm!(self, "cvt.u16.u32 {half}, {both}");
            asm!(self, "cvt.f32.f16 {d}, {half}");
            return d;
        }
        if format.has_infinities() {
            // An E5M2 float is the upper half of an `f16`.
            let [shifted, half] = [Class::B32, Class::B16].map(|class| self.reg(class));
            asm!(self, "shl.b32 {shifted}, {x}, 8");
            asm!(self, "cvt.u16.u32 {half}, {shifted}");
            asm!(self, "cvt.f32.f16 {d}, {half}");
            return d;
        }
        let [magnitude, shifted, finite, value, sign, shifted_sign, signed] = [0; 7].map(|_| self.reg(Class::B32));
        let ([small, scaled], is_nan) = ([0; 2].map(|_| self.reg(Class::F32)), self.reg(Class::Pred));
        asm!(self, "and.b32 {magnitude}, {x}, 0x7f");
        asm!(self, "shl.b32 {shifted}, {magnitude}, {}", format.shift());
        asm!(self, "mov.b32 {small}, {shifted}");
        asm!(self, "mul.rn.f32 {scaled}, {small}, 0f{:08X}", format.scale());
        asm!(self, "mov.b32 {finite}, {scaled}");
        asm!(self, "setp.gt.u32 {is_nan}, {magnitude}, {}", format.largest());
        asm!(self, "selp.b32 {value}, 0x7fc00000, {finite}, {is_nan}");
        asm!(self, "and.b32 {sign}, {x}, 0x80");
        asm!(self, "shl.b32 {shifted_sign}, {sign}, 24");
        asm!(self, "or.b32 {signed}, {value}, {shifted_sign}");
        asm!(self, "mov.b32 {d}, {signed}");
        d
    }

    /// The nearest 8-bit float.
    pub(crate) fn round_to_float8(&mut self, x: Reg, from: Dtype, to: Dtype) -> Reg {
        let format = Format::of(to).expect("a float of 8 bits has a format");
        let x = self.single(x, from);
        let d = self.reg(Class::B32);
        if self.target.ask(Target::has_float8_conversions) {
            let (zero, pair) = (self.reg(Class::F32), self.reg(Class::B16));
            asm!(self, "mov.f32 {zero}, 0f00000000");
            asm!(self, "cvt.rn.satfinite.{}x2.f32 {pair}, {zero}, {x}", name(format));
            asm!(self, "cvt.u32.u16 {d}, {pair}");
            return d;
        }
        let [bits, magnitude, finite, sum, small] = [0; 5].map(|_| self.reg(Class::B32));
        asm!(self, "mov.b32 {bits}, {x}");
        asm!(self, "and.b32 {magnitude}, {bits}, 0x7fffffff");
        asm!(self, "min.u32 {finite}, {magnitude}, {:#x}", format.largest_bits());
        // A result that is subnormal in the 8-bit format is rounded by an addition whose last bit is the smallest 8-bit number.
        let [single, rounded] = [0; 2].map(|_| self.reg(Class::F32));
        asm!(self, "mov.b32 {single}, {finite}");
        asm!(self, "add.rn.f32 {rounded}, {single}, 0f{:08X}", format.magic());
        asm!(self, "mov.b32 {sum}, {rounded}");
        asm!(self, "sub.u32 {small}, {sum}, {:#x}", format.magic());
        // Other results round ties to even, by the last remaining bit.
        let [odd, almost, raised, normal] = [0; 4].map(|_| self.reg(Class::B32));
        let below_half = (1 << (format.shift() - 1)) - 1;
        asm!(self, "bfe.u32 {odd}, {finite}, {}, 1", format.shift());
        asm!(self, "add.u32 {almost}, {finite}, {odd}");
        asm!(self, "add.u32 {raised}, {almost}, {:#x}", below_half - format.rebias() as i32);
        asm!(self, "shr.u32 {normal}, {raised}, {}", format.shift());
        let [is_small, is_nan] = [0; 2].map(|_| self.reg(Class::Pred));
        let [chosen, shifted, sign, signed] = [0; 4].map(|_| self.reg(Class::B32));
        asm!(self, "setp.lt.u32 {is_small}, {finite}, {:#x}", format.smallest_normal_bits());
        asm!(self, "selp.b32 {chosen}, {small}, {normal}, {is_small}");
        asm!(self, "shr.u32 {shifted}, {bits}, 24");
        asm!(self, "and.b32 {sign}, {shifted}, 0x80");
        asm!(self, "or.b32 {signed}, {chosen}, {sign}");
        asm!(self, "setp.gt.u32 {is_nan}, {magnitude}, 0x7f800000");
        asm!(self, "selp.b32 {d}, {NAN:#x}, {signed}, {is_nan}");
        d
    }
}

/// The name of the format in an instruction.
fn name(format: Format) -> &'static str {
    if format == Format::E4M3 { "e4m3" } else { "e5m2" }
}
