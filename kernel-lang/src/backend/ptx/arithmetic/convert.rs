//! Casts, with the semantics of Rust's `as`: integers wrap, float-to-integer casts saturate, and every cast rounds once.

use crate::dtype::Dtype;
use crate::float8::Format;
use crate::ir::Value;

use crate::backend::ptx::text::registers::{Class, Reg, asm};
use crate::backend::ptx::{Emitter, Lanes, arithmetic_type};

impl Emitter<'_> {
    pub(crate) fn cast(&mut self, x: Value, from: Dtype, to: Dtype) -> Lanes {
        match self.lanes(x) {
            Lanes::Splat(reg) => Lanes::Splat(self.cast_one(reg, from, to)),
            Lanes::Each(regs) if from == Dtype::F32 && to.is_half() && regs.len().is_multiple_of(2) => {
                Lanes::Each(regs.chunks(2).flat_map(|pair| self.round_pair(pair[0], pair[1], to)).collect())
            }
            Lanes::Each(regs) => Lanes::Each(regs.into_iter().map(|reg| self.cast_one(reg, from, to)).collect()),
        }
    }

    /// Converts two `f32` to two 16-bit floats in one instruction.
    fn round_pair(&mut self, low: Reg, high: Reg, to: Dtype) -> [Reg; 2] {
        let both = self.reg(Class::B32);
        asm!(self, "cvt.rn.{}x2.f32 {both}, {high}, {low}", arithmetic_type(to));
        let halves = [0; 2].map(|_| self.reg(Class::B16));
        asm!(self, "mov.b32 {{{}, {}}}, {both}", halves[0], halves[1]);
        halves
    }

    pub(crate) fn cast_one(&mut self, x: Reg, from: Dtype, to: Dtype) -> Reg {
        if from == to {
            return x;
        }
        if let Some(format) = Format::of(from) {
            let wide = self.widen_float8(x, format);
            return self.cast_one(wide, Dtype::F32, to);
        }
        if from.is_half() {
            // Every 16-bit float is exact in `f32`.
            let wide = self.widen_half(x, from);
            return self.cast_one(wide, Dtype::F32, to);
        }
        match (from, to) {
            (Dtype::Bool, _) => self.bool_to(x, to),
            (_, Dtype::Bool) => self.predicate_of(x, from),
            (_, Dtype::F16 | Dtype::Bf16) => self.round_to_half(x, from, to),
            (_, Dtype::F8E4M3 | Dtype::F8E5M2) => self.round_to_float8(x, from, to),
            _ if from.is_int() && to.is_int() => self.between_ints(x, from, to),
            _ if to.is_int() => self.float_to_int(x, from, to),
            _ => {
                let d = self.reg(Class::of(to));
                let rounding = if from == Dtype::F32 && to == Dtype::F64 { "" } else { ".rn" };
                asm!(self, "cvt{rounding}.{}.{} {d}, {x}", arithmetic_type(to), arithmetic_type(from));
                d
            }
        }
    }

    fn widen_half(&mut self, x: Reg, from: Dtype) -> Reg {
        let d = self.reg(Class::F32);
        if from == Dtype::F16 {
            asm!(self, "cvt.f32.f16 {d}, {x}");
        } else {
            let (zero, bits) = (self.reg(Class::B16), self.reg(Class::B32));
            asm!(self, "mov.b16 {zero}, 0");
            asm!(self, "mov.b32 {bits}, {{{zero}, {x}}}");
            asm!(self, "mov.b32 {d}, {bits}");
        }
        d
    }

    fn bool_to(&mut self, x: Reg, to: Dtype) -> Reg {
        let d = self.reg(Class::of(to));
        match to {
            Dtype::F16 => asm!(self, "selp.b16 {d}, 0x3c00, 0, {x}"),
            Dtype::Bf16 => asm!(self, "selp.b16 {d}, 0x3f80, 0, {x}"),
            Dtype::F32 => asm!(self, "selp.f32 {d}, 0f3F800000, 0f00000000, {x}"),
            Dtype::F64 => asm!(self, "selp.f64 {d}, 0d3FF0000000000000, 0d0000000000000000, {x}"),
            Dtype::F8E4M3 => asm!(self, "selp.b32 {d}, 0x38, 0, {x}"),
            Dtype::F8E5M2 => asm!(self, "selp.b32 {d}, 0x3c, 0, {x}"),
            _ => asm!(self, "selp.{} {d}, 1, 0, {x}", d.class.suffix()),
        }
        d
    }

    /// NaN is not zero, so it converts to `true`.
    fn predicate_of(&mut self, x: Reg, from: Dtype) -> Reg {
        let d = self.reg(Class::Pred);
        match from {
            Dtype::F32 => asm!(self, "setp.neu.f32 {d}, {x}, 0f00000000"),
            Dtype::F64 => asm!(self, "setp.neu.f64 {d}, {x}, 0d0000000000000000"),
            _ => asm!(self, "setp.ne.{} {d}, {x}, 0", arithmetic_type(from)),
        }
        d
    }

    fn between_ints(&mut self, x: Reg, from: Dtype, to: Dtype) -> Reg {
        match (x.class, Class::of(to)) {
            (Class::B64, Class::B32) => {
                let low = self.reg(Class::B32);
                asm!(self, "cvt.u32.u64 {low}, {x}");
                self.narrow(to, low)
            }
            (Class::B32, Class::B64) => {
                let wide = self.reg(Class::B64);
                let sign = if from.is_signed_int() { 's' } else { 'u' };
                asm!(self, "cvt.{sign}64.{sign}32 {wide}, {x}");
                wide
            }
            (Class::B32, _) if from.widens_to(to) => x,
            _ => self.narrow(to, x),
        }
    }

    /// The hardware saturates, but converts NaN to 0 only between 32-bit types.
    fn float_to_int(&mut self, x: Reg, from: Dtype, to: Dtype) -> Reg {
        let (source, class) = (arithmetic_type(from), Class::of(to));
        let d = self.reg(class);
        // Narrow integers are packed from signed ones.
        let instruction_type = if to.bits() < 32 { "s32" } else { arithmetic_type(to) };
        asm!(self, "cvt.rzi.{instruction_type}.{source} {d}, {x}");
        if from == Dtype::F64 || class == Class::B64 {
            let (is_number, number) = (self.reg(Class::Pred), self.reg(class));
            asm!(self, "setp.num.{source} {is_number}, {x}, {x}");
            asm!(self, "selp.{} {number}, {d}, 0, {is_number}", class.suffix());
            return self.clamp(number, to);
        }
        self.clamp(d, to)
    }

    /// Saturates a signed 32-bit integer to a narrower type. Packing has an instruction that saturates too: it takes `x`, and the assembler
    /// then removes these instructions.
    fn clamp(&mut self, x: Reg, to: Dtype) -> Reg {
        let Some((low, high)) = to.int_range().filter(|_| to.bits() < 32) else { return x };
        let (below, d) = (self.reg(Class::B32), self.reg(Class::B32));
        asm!(self, "min.s32 {below}, {x}, {high}");
        asm!(self, "max.s32 {d}, {below}, {low}");
        self.clamped.insert(d, (to, x));
        d
    }

    fn round_to_half(&mut self, x: Reg, from: Dtype, to: Dtype) -> Reg {
        let single = self.single(x, from);
        let d = self.reg(Class::B16);
        asm!(self, "cvt.rn.{}.f32 {d}, {single}", arithmetic_type(to));
        d
    }

    /// An `f32` that rounds to a narrower float as `x` itself does.
    pub(crate) fn single(&mut self, x: Reg, from: Dtype) -> Reg {
        match from {
            Dtype::F32 => x,
            Dtype::F64 => self.round_to_odd(x, from),
            _ if from.bits() < 32 => self.cast_one(x, from, Dtype::F32),
            _ => self.round_to_odd(x, from),
        }
    }

    /// An `f32` that rounds to a 16-bit float as `x` itself does: truncated, with the last bit set if any bits were lost (Boldo and
    /// Melquiond, "When double rounding is odd", 2005).
    fn round_to_odd(&mut self, x: Reg, from: Dtype) -> Reg {
        let source = arithmetic_type(from);
        let (truncated, back, lost) = (self.reg(Class::F32), self.reg(x.class), self.reg(Class::Pred));
        asm!(self, "cvt.rz.f32.{source} {truncated}, {x}");
        if from == Dtype::F64 {
            asm!(self, "cvt.f64.f32 {back}, {truncated}");
            // The comparison is ordered, so NaN keeps its bits.
            asm!(self, "setp.ne.f64 {lost}, {back}, {x}");
        } else {
            asm!(self, "cvt.rzi.{source}.f32 {back}, {truncated}");
            asm!(self, "setp.ne.{source} {lost}, {back}, {x}");
        }
        let [bits, sticky, odd] = [0; 3].map(|_| self.reg(Class::B32));
        let d = self.reg(Class::F32);
        asm!(self, "mov.b32 {bits}, {truncated}");
        asm!(self, "selp.b32 {sticky}, 1, 0, {lost}");
        asm!(self, "or.b32 {odd}, {bits}, {sticky}");
        asm!(self, "mov.b32 {d}, {odd}");
        d
    }
}
