//! `cvt` with packed pairs, to `.tf32`, with `.relu` and `.satfinite`, and `cvt.pack` (PTX ISA, 9.7.9.21 and 9.7.9.22).

use crate::counters::Class;
use crate::instructions::lanewise::{Decoded, lanewise, mask, number, sources, type_of};
use crate::instructions::{Form, Unsupported};
use crate::numerics::float::{Bf16, F16, F32, Float, pack_f64};
use crate::numerics::integer_float::range;
use crate::numerics::small_float::{Format, Rounding, e4m3_to_f16, e5m2_to_f16};
use crate::ptx::Type;

/// A conversion of one number to a narrower format.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Narrow {
    format: Format,
    nan: u64,
    rounding: Rounding,
    /// Negative numbers become 0.
    relu: bool,
    /// Whether overflows and infinities become the largest finite number (`.satfinite`).
    finite: bool,
}

impl Narrow {
    fn apply(self, value: f64) -> u64 {
        let Some(result) = pack_f64(self.format, value, self.rounding) else { return self.nan };
        if self.relu && value.is_sign_negative() {
            return 0;
        }
        // For numbers of the same sign, the order of the values is the order of the bits.
        if self.finite { result.min(self.format.pack(value.is_sign_negative(), 1, i32::from(i16::MAX), Rounding::Zero)) } else { result }
    }
}

/// The NaN result of `cvt.rn.tf32.f32`.
const NAN_TF32: u64 = 0x7fff_e000;

/// Whether this module decodes the conversion.
pub(super) fn is_packed(to: Type, from: Type) -> bool {
    matches!(to, Type::F16x2 | Type::Bf16x2 | Type::Tf32 | Type::E4m3x2 | Type::E5m2x2) || matches!(from, Type::E4m3x2 | Type::E5m2x2)
}

/// Decodes `cvt` with these types.
pub(super) fn cvt(form: &mut Form<'_>, to: Type, from: Type) -> Decoded {
    match (to, from) {
        (Type::F16x2, Type::E4m3x2) => from_bytes(form, e4m3_to_f16, to, from),
        (Type::F16x2, Type::E5m2x2) => from_bytes(form, e5m2_to_f16, to, from),
        (Type::E4m3x2 | Type::E5m2x2, Type::F16x2) => {
            let narrow = take(form, to)?;
            let destination = form.destination(to)?;
            let sources = sources(form, [from])?;
            lanewise(Class::Float, destination, sources, move |[a]| {
                narrow.apply(F16::value(a >> 16)) << 8 | narrow.apply(F16::value(a & 0xffff))
            })
        }
        (Type::F16x2 | Type::Bf16x2 | Type::E4m3x2 | Type::E5m2x2, Type::F32) => {
            let narrow = take(form, to)?;
            let destination = form.destination(to)?;
            let sources = sources(form, [from; 2])?;
            let half = to.bits() / 2;
            lanewise(Class::Float, destination, sources, move |[a, b]| narrow.apply(F32::value(a)) << half | narrow.apply(F32::value(b)))
        }
        (Type::Tf32, Type::F32) if form.flag("rna") => {
            let finite = form.flag("satfinite");
            let destination = form.destination(to)?;
            let sources = sources(form, [from])?;
            lanewise(Class::Float, destination, sources, move |[a]| if finite { finite_tf32(a) } else { to_tf32(a) })
        }
        (Type::Tf32, Type::F32) => one(form, to),
        _ => Err(form.error(format!("`cvt` has no types `{to}{from}`"))),
    }
}

/// `cvt.rna.tf32.f32`: adds half of the last bit and truncates. A NaN is only truncated, as in hardware.
fn to_tf32(a: u64) -> u64 {
    let is_finite = a & 0x7fff_ffff < 0x7f80_0000;
    (if is_finite { a + 0x1000 } else { a }) & 0xffff_e000
}

/// `cvt.rna.satfinite.tf32.f32`: an infinity is one step above the highest number. Hardware decrements NaNs, too.
fn finite_tf32(a: u64) -> u64 {
    let rounded = to_tf32(a);
    if rounded & 0x7fff_ffff >= 0x7f80_0000 { rounded - 0x2000 } else { rounded }
}

/// `cvt{.relu}{.satfinite}` of one `.f32` to `.f16`, `.bf16` or `.tf32`.
pub(super) fn one(form: &mut Form<'_>, to: Type) -> Decoded {
    let narrow = take(form, to)?;
    let destination = form.destination(to)?;
    let sources = sources(form, [Type::F32])?;
    lanewise(Class::Float, destination, sources, move |[a]| narrow.apply(F32::value(a)))
}

/// Takes the modifiers of a conversion to this type.
fn take(form: &mut Form<'_>, to: Type) -> Result<Narrow, Unsupported> {
    let (format, nan) = match to {
        Type::F16 | Type::F16x2 => (Format::F16, F16::nan(&[])),
        Type::Bf16 | Type::Bf16x2 => (Format::BF16, Bf16::nan(&[])),
        Type::Tf32 => (Format::TF32, NAN_TF32),
        Type::E4m3x2 => (Format::E4M3, 0x7f),
        _ => (Format::E5M2, 0x7f),
    };
    let known: &[(&str, Rounding)] = match to {
        Type::Tf32 => &[("rn", Rounding::NearestEven), ("rz", Rounding::Zero)],
        Type::E4m3x2 | Type::E5m2x2 => &[("rn", Rounding::NearestEven)],
        _ => &[("rn", Rounding::NearestEven), ("rz", Rounding::Zero)],
    };
    let rounding = form.one_of(known).ok_or_else(|| form.error(format!("`cvt` to `{to}` needs a rounding, such as `.{}`", known[0].0)))?;
    let finite = to != Type::Tf32 && form.flag("satfinite");
    if !finite && matches!(to, Type::E4m3x2 | Type::E5m2x2) {
        return Err(form.error(format!("`cvt` to `{to}` is written with `.satfinite`")));
    }
    let relu = form.flag("relu");
    Ok(Narrow { format, nan, rounding, relu, finite })
}

/// Converts two bytes to two `.f16`, exactly.
fn from_bytes(form: &mut Form<'_>, convert: fn(u8) -> u16, to: Type, from: Type) -> Decoded {
    if !form.flag("rn") {
        return Err(form.error(format!("`cvt{to}{from}` is written with `.rn`")));
    }
    let relu = form.flag("relu");
    let destination = form.destination(to)?;
    let sources = sources(form, [from])?;
    lanewise(Class::Float, destination, sources, move |[a]| {
        let half = |byte: u64| {
            let bits = u64::from(convert(byte as u8));
            if relu { F16::relu(bits) } else { bits }
        };
        half(a >> 8) << 16 | half(a & 0xff)
    })
}

/// `cvt.pack.sat.to.from{.b32} d, a, b{, c}`: packs two clamped integers and, above them, bits of `c`. The caller has taken `.pack`.
pub(super) fn pack(form: &mut Form<'_>) -> Decoded {
    if !form.flag("sat") {
        return Err(form.error("`cvt.pack` is written with `.sat`"));
    }
    const TO: [(&str, (u32, bool)); 8] = [
        ("u16", (16, false)),
        ("s16", (16, true)),
        ("u8", (8, false)),
        ("s8", (8, true)),
        ("u4", (4, false)),
        ("s4", (4, true)),
        ("u2", (2, false)),
        ("s2", (2, true)),
    ];
    let (bits, is_signed) = form.one_of(&TO).ok_or_else(|| form.error("`cvt.pack` has no such type of result"))?;
    type_of(form, &[Type::S32])?;
    if bits < 16 {
        type_of(form, &[Type::B32])?;
    }
    let (lowest, highest) = range(bits, is_signed);
    let clamp = move |value: u64| number(value, Type::S32).clamp(lowest, highest) as u64 & mask(bits);
    let destination = form.destination(Type::B32)?;
    if bits == 16 {
        let sources = sources(form, [Type::S32; 2])?;
        return lanewise(Class::Integer, destination, sources, move |[a, b]| clamp(a) << 16 | clamp(b));
    }
    let sources = sources(form, [Type::S32, Type::S32, Type::B32])?;
    lanewise(Class::Integer, destination, sources, move |[a, b, c]| (c << (2 * bits) | clamp(a) << bits | clamp(b)) & mask(32))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::instructions::harness::{refusal, with_registers};

    fn run(text: &str, values: &[u64]) -> u64 {
        let mut harness = with_registers();
        for (index, &value) in values.iter().enumerate() {
            harness.define(&format!("%r{}", index + 1), Type::B32, |_| value);
            harness.define(&format!("%h{}", index + 1), Type::B16, |_| value & 0xffff);
        }
        harness.run(text).unwrap_or_else(|failure| panic!("{text}: {failure:?}"));
        harness.value(&text.split_whitespace().nth(1).unwrap()[..3])[0]
    }

    fn single(value: f32) -> u64 {
        u64::from(value.to_bits())
    }

    #[test]
    fn the_first_operand_goes_to_the_upper_half() {
        assert_eq!(run("cvt.rn.f16x2.f32 %r0, %r1, %r2;", &[single(1.0), single(-2.0)]), 0x3c00_c000);
        assert_eq!(run("cvt.rn.relu.bf16x2.f32 %r0, %r1, %r2;", &[single(1.0), single(-2.0)]), 0x3f80_0000);
        assert_eq!(run("cvt.rz.f16x2.f32 %r0, %r1, %r2;", &[single(1e9), single(f32::INFINITY)]), 0x7bff_7c00);
        assert_eq!(run("cvt.rn.satfinite.f16x2.f32 %r0, %r1, %r2;", &[single(1e9), single(f32::NEG_INFINITY)]), 0x7bff_fbff);
        assert_eq!(run("cvt.rn.satfinite.e4m3x2.f32 %h0, %r1, %r2;", &[single(448.0), single(-1e9)]), 0x7efe);
        assert_eq!(run("cvt.rn.satfinite.relu.e5m2x2.f32 %h0, %r1, %r2;", &[single(f32::NAN), single(-1e9)]), 0x7f00);
        assert_eq!(run("cvt.rn.satfinite.e4m3x2.f16x2 %h0, %r1;", &[0x3c00_c000]), 0x38c0);
        assert_eq!(run("cvt.rn.f16x2.e4m3x2 %r0, %h1;", &[0x38c0]), 0x3c00_c000);
        assert_eq!(run("cvt.rn.relu.f16x2.e5m2x2 %r0, %h1;", &[0x3cc0]), 0x3c00_0000);
    }

    #[test]
    fn one_number() {
        assert_eq!(run("cvt.rna.tf32.f32 %r0, %r1;", &[0x3f80_1000]), 0x3f80_2000, "a tie goes away from zero");
        assert_eq!(run("cvt.rn.tf32.f32 %r0, %r1;", &[0x3f80_1000]), 0x3f80_0000);
        assert_eq!(run("cvt.rna.tf32.f32 %r0, %r1;", &[0xff80_0000]), 0xff80_0000);
        assert_eq!(run("cvt.rna.satfinite.tf32.f32 %r0, %r1;", &[0x7f80_0000]), 0x7f7f_e000);
        assert_eq!(run("cvt.rna.satfinite.tf32.f32 %r0, %r1;", &[0x7f8c_1ec1]), 0x7f8b_e000);
        assert_eq!(run("cvt.rz.tf32.f32 %r0, %r1;", &[0xffc0_0000]), 0x7fff_e000);
        assert_eq!(run("cvt.rn.relu.f16.f32 %h0, %r1;", &[single(-1.0)]), 0);
        assert_eq!(run("cvt.rn.satfinite.bf16.f32 %h0, %r1;", &[0x7f80_0000]), 0x7f7f);
        assert_eq!(run("cvt.rz.satfinite.f16.f32 %h0, %r1;", &[0x7f80_0000]), 0x7bff);
        assert_eq!(run("cvt.rna.tf32.f32 %r0, %r1;", &[0xffff_ffff]), 0xffff_e000);
        assert_eq!(run("cvt.rn.relu.f16.f32 %h0, %r1;", &[single(f32::NAN)]), 0x7fff);
    }

    #[test]
    fn rounding_away_is_the_same_by_adding_half() {
        let narrow = Narrow { format: Format::TF32, nan: 0, rounding: Rounding::NearestAway, relu: false, finite: false };
        for bits in (0..=0xffff_ffffu64).step_by(0x7_ffff).filter(|bits| !F32::is_nan(*bits)) {
            assert_eq!(to_tf32(bits), narrow.apply(F32::value(bits)), "{bits:#x}");
        }
        assert_eq!(to_tf32(0x7f7f_f000), 0x7f80_0000, "rounded to infinity");
    }

    /// Compares with independent conversions, for each `.f32` on a grid that contains every tie and its neighbours.
    #[test]
    fn bytes_agree_with_another_implementation() {
        use crate::numerics::small_float::{e4m3_from_f32, e5m2_from_f32};
        for relu in [false, true] {
            for (format, other) in [(Format::E4M3, e4m3_from_f32 as fn(f32, bool) -> u8), (Format::E5M2, e5m2_from_f32)] {
                let narrow = Narrow { format, nan: 0x7f, rounding: Rounding::NearestEven, relu, finite: true };
                for high in 0..=0xffffu32 {
                    for low in [0, 1, 0xffff] {
                        let value = f32::from_bits(high << 16 | low);
                        assert_eq!(narrow.apply(f64::from(value)), u64::from(other(value, relu)), "{value:e} {relu}");
                    }
                }
            }
        }
    }

    #[test]
    fn integers_are_packed() {
        let minus = 0xffff_fff0;
        assert_eq!(run("cvt.pack.sat.s16.s32 %r0, %r1, %r2;", &[0x12345, minus]), 0x7fff_fff0);
        assert_eq!(run("cvt.pack.sat.u16.s32 %r0, %r1, %r2;", &[0x12345, minus]), 0xffff_0000);
        assert_eq!(run("cvt.pack.sat.u8.s32.b32 %r0, %r1, %r2, %r3;", &[0x12, 300, 0xaabb_ccdd]), 0xccdd_12ff);
        assert_eq!(run("cvt.pack.sat.s4.s32.b32 %r0, %r1, %r2, %r3;", &[7, minus, 0xaabb_ccdd]), 0xbbcc_dd78);
        assert_eq!(run("cvt.pack.sat.u2.s32.b32 %r0, %r1, %r2, %r3;", &[7, 1, 0xaabb_ccdd]), 0xabbc_cddd);
    }

    #[test]
    fn forms_that_ptx_lacks_are_refused() {
        for text in [
            "cvt.f16x2.f32 %r0, %r1, %r2;",
            "cvt.rm.f16x2.f32 %r0, %r1, %r2;",
            "cvt.rn.f16x2.f32 %r0, %r1;",
            "cvt.rn.satfinite.tf32.f32 %r0, %r1;",
            "cvt.rn.e4m3x2.f32 %h0, %r1, %r2;",
            "cvt.rna.relu.tf32.f32 %r0, %r1;",
            "cvt.f16x2.e4m3x2 %r0, %h1;",
            "cvt.rn.bf16x2.e4m3x2 %r0, %h1;",
            "cvt.pack.s16.s32 %r0, %r1, %r2;",
            "cvt.pack.sat.s8.s32 %r0, %r1, %r2;",
        ] {
            assert!(refusal(text).is_some(), "{text}");
        }
    }
}
