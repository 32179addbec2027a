//! `cvt` from one number to one number (PTX ISA, 9.7.9.21). Forms with two packed results are in `convert_packed.rs`.
//!
//! Registers may be wider than the types. A source uses the low bits of its register. A result is sign-extended or zero-extended to the
//! width of its register.

use crate::counters::Class;
use crate::instructions::float::is_lifted;
use crate::instructions::lanewise::{Decoded, lanewise, mask, no_type, number};
use crate::instructions::{Form, Register, Unsupported, Value, convert_packed};
use crate::numerics::float::{Bf16, F16, F32, F64, Float};
use crate::numerics::integer_float::{from_integer, range, to_integer, to_whole};
use crate::numerics::small_float::{Format, Rounding};
use crate::ptx::Type;

const TO_FLOAT: [(&str, Rounding); 4] =
    [("rn", Rounding::NearestEven), ("rz", Rounding::Zero), ("rm", Rounding::Down), ("rp", Rounding::Up)];
const TO_WHOLE: [(&str, Rounding); 4] =
    [("rni", Rounding::NearestEven), ("rzi", Rounding::Zero), ("rmi", Rounding::Down), ("rpi", Rounding::Up)];

/// The modifiers between the opcode and the types.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Modifiers {
    /// The rounding mode for results that the type cannot represent.
    rounding: Rounding,
    /// Whether the result is rounded to an integral value in its own format.
    is_whole: bool,
    flushes: bool,
    saturates: bool,
}

/// `cvt`
pub(super) fn cvt(form: &mut Form<'_>) -> Decoded {
    if form.flag("pack") {
        return convert_packed::pack(form);
    }
    let to = form.ty()?;
    let from = form.ty()?;
    if convert_packed::is_packed(to, from) {
        return convert_packed::cvt(form, to, from);
    }
    if from == Type::F32 && matches!(to, Type::F16 | Type::Bf16) && form.has(&["relu", "satfinite"]) {
        return convert_packed::one(form, to);
    }
    for ty in [to, from] {
        if !is_integer(ty) && !matches!(ty, Type::F16 | Type::Bf16 | Type::F32 | Type::F64) {
            return Err(no_type(form, ty));
        }
    }
    let modifiers = modifiers(form, to, from)?;
    let destination_type = form.peek().and_then(|operand| form.register_type(operand)).unwrap_or(to);
    let destination = form.wider_destination(to)?;
    let source = form.wider_source(from)?;
    let widen = Widen { ty: to, register_bits: destination_type.bits() };
    match (is_integer(to), is_integer(from)) {
        (true, true) => integers(destination, source, from, widen, modifiers.saturates),
        (true, false) => by_format(from, Towards::Integer { destination, source, widen, modifiers }),
        (false, true) => by_format(to, Towards::Float { destination, source, from, modifiers }),
        (false, false) => floats(destination, source, to, from, modifiers),
    }
}

fn is_integer(ty: Type) -> bool {
    matches!(ty, Type::U8 | Type::U16 | Type::U32 | Type::U64 | Type::S8 | Type::S16 | Type::S32 | Type::S64)
}

/// Takes the modifiers that these types allow. A missing mandatory modifier is an error.
fn modifiers(form: &mut Form<'_>, to: Type, from: Type) -> Result<Modifiers, Unsupported> {
    let (rounding, is_whole) = match (is_integer(to), is_integer(from)) {
        (true, true) => (None, false),
        (true, false) => {
            let rounding = form.one_of(&TO_WHOLE);
            (Some(rounding.ok_or_else(|| form.error(format!("`cvt{to}{from}` needs a rounding to an integer, such as `.rzi`")))?), true)
        }
        (false, true) => {
            let rounding = form.one_of(&TO_FLOAT);
            (Some(rounding.ok_or_else(|| form.error(format!("`cvt{to}{from}` needs a rounding, such as `.rn`")))?), false)
        }
        (false, false) if to == from => (form.one_of(&TO_WHOLE), true),
        // The conversion is exact, but a rounding modifier is allowed.
        (false, false) if from == Type::Bf16 && is_exact(to, from) => (form.one_of(&TO_FLOAT), false),
        (false, false) if is_exact(to, from) => (None, false),
        (false, false) if to.bits() == from.bits() => (Some(form.one_of(&TO_FLOAT).unwrap_or(Rounding::NearestEven)), false),
        (false, false) => {
            let rounding = form.one_of(&TO_FLOAT);
            (Some(rounding.ok_or_else(|| form.error(format!("`cvt{to}{from}` needs a rounding, such as `.rn`")))?), false)
        }
    };
    let flushes = (to == Type::F32 || from == Type::F32) && form.flag("ftz");
    let saturates = can_saturate(to, from) && form.flag("sat");
    let is_whole = is_whole && rounding.is_some();
    Ok(Modifiers { rounding: rounding.unwrap_or(Rounding::NearestEven), is_whole, flushes, saturates })
}

/// Whether a conversion allows `.sat`: between integers only if a result can be out of range, and never with `.bf16`.
fn can_saturate(to: Type, from: Type) -> bool {
    if is_integer(to) && is_integer(from) {
        let [(to_lowest, to_highest), (from_lowest, from_highest)] = [to, from].map(|ty| range(ty.bits(), ty.is_signed()));
        return from_lowest < to_lowest || to_highest < from_highest;
    }
    to != Type::Bf16 && from != Type::Bf16
}

/// Whether the first type represents every number of the second.
fn is_exact(to: Type, from: Type) -> bool {
    to.bits() > from.bits()
}

/// The extension of a result to the width of a register.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Widen {
    ty: Type,
    register_bits: u32,
}

impl Widen {
    fn apply(self, value: i128) -> u64 {
        number(value as u64, self.ty) as u64 & mask(self.register_bits)
    }
}

/// Truncates or extends; with `.sat` clamps.
fn integers(destination: Option<Register>, source: Value, from: Type, widen: Widen, saturates: bool) -> Decoded {
    if saturates {
        let (lowest, highest) = range(widen.ty.bits(), widen.ty.is_signed());
        return lanewise(Class::Integer, destination, [source], move |[a]| widen.apply(number(a, from).clamp(lowest, highest)));
    }
    lanewise(Class::Integer, destination, [source], move |[a]| widen.apply(number(a, from)))
}

/// A conversion in which exactly one side is a float.
enum Towards {
    Integer { destination: Option<Register>, source: Value, widen: Widen, modifiers: Modifiers },
    Float { destination: Option<Register>, source: Value, from: Type, modifiers: Modifiers },
}

fn by_format(format: Type, towards: Towards) -> Decoded {
    match format {
        Type::F16 => with_integer::<F16>(towards),
        Type::Bf16 => with_integer::<Bf16>(towards),
        Type::F32 => with_integer::<F32>(towards),
        _ => with_integer::<F64>(towards),
    }
}

fn with_integer<T: Float>(towards: Towards) -> Decoded {
    match towards {
        // A float is clamped to the range of the integer even without `.sat`.
        Towards::Integer { destination, source, widen, modifiers } => lanewise(Class::Float, destination, [source], move |[a]| {
            let a = low::<T>(a);
            let a = if modifiers.flushes { T::flush(a) } else { a };
            widen.apply(to_integer::<T>(a, modifiers.rounding, widen.ty.bits(), widen.ty.is_signed()))
        }),
        Towards::Float { destination, source, from, modifiers } => lanewise(Class::Float, destination, [source], move |[a]| {
            let result = from_integer::<T>(number(a, from), modifiers.rounding);
            if modifiers.saturates { T::saturate(result) } else { result }
        }),
    }
}

fn floats(destination: Option<Register>, source: Value, to: Type, from: Type, modifiers: Modifiers) -> Decoded {
    macro_rules! from {
        ($to:ty) => {
            match from {
                Type::F16 => between::<$to, F16>(destination, source, modifiers),
                Type::Bf16 => between::<$to, Bf16>(destination, source, modifiers),
                Type::F32 => between::<$to, F32>(destination, source, modifiers),
                _ => between::<$to, F64>(destination, source, modifiers),
            }
        };
    }
    match to {
        Type::F16 => from!(F16),
        Type::Bf16 => from!(Bf16),
        Type::F32 => from!(F32),
        _ => from!(F64),
    }
}

fn between<To: Float, From: Float>(destination: Option<Register>, source: Value, modifiers: Modifiers) -> Decoded {
    lanewise(Class::Float, destination, [source], move |[a]| {
        let a = low::<From>(a);
        // Only `.f32` values are flushed.
        let a = if modifiers.flushes && From::BITS == 32 { From::flush(a) } else { a };
        let value = if modifiers.is_whole { to_whole(From::value(a), modifiers.rounding) } else { From::value(a) };
        let result = match value.is_nan() {
            true => nan::<To, From>(a, modifiers.flushes),
            false => round::<To>(value, modifiers.rounding),
        };
        let is_lifted = || is_lifted::<To>(result, value, modifiers.rounding);
        let result = match modifiers.flushes && To::BITS == 32 {
            true if is_lifted() => result & To::SIGN,
            true => To::flush(result),
            false => result,
        };
        if modifiers.saturates { To::saturate(result) } else { result }
    })
}

fn round<To: Float>(value: f64, rounding: Rounding) -> u64 {
    To::round(value, rounding, &[])
}

/// The result for a NaN. Most conversions return the canonical NaN of the result's format. Conversions between `.f64` and other formats
/// keep the sign and the upper bits of the payload, and make the NaN quiet. `.bf16` to `.f32` only shifts. `.ftz` first replaces the NaN by
/// the NaN of `.f32`.
fn nan<To: Float, From: Float>(a: u64, flushes: bool) -> u64 {
    if From::BITS == 64 || To::BITS == 64 {
        let a = if flushes && From::BITS == 32 { From::nan(&[a]) } else { a };
        let (from, to) = (From::FORMAT.fraction_bits(), To::FORMAT.fraction_bits());
        let fraction = a & mask(from);
        let fraction = if to > from { fraction << (to - from) } else { fraction >> (from - to) };
        let sign = if a & From::SIGN != 0 { To::SIGN } else { 0 };
        return sign | To::FORMAT.infinity() | 1 << (to - 1) | fraction;
    }
    if To::BITS == 32 && From::FORMAT == Format::BF16 && !flushes { a << 16 } else { To::nan(&[a]) }
}

fn low<T: Float>(bits: u64) -> u64 {
    bits & (T::SIGN | (T::SIGN - 1))
}

#[cfg(test)]
mod tests {
    use crate::instructions::harness::{refusal, with_registers};
    use crate::ptx::Type;

    fn run(text: &str, value: u64) -> u64 {
        let mut harness = with_registers();
        for (letter, ty) in [('d', Type::B64), ('r', Type::B32), ('h', Type::B16), ('b', Type::B8)] {
            harness.define(&format!("%{letter}1"), ty, |_| value & crate::instructions::lanewise::mask(ty.bits()));
        }
        harness.run(text).unwrap_or_else(|failure| panic!("{text}: {failure:?}"));
        harness.value(&text.split_whitespace().nth(1).unwrap()[..3])[0]
    }

    fn single(value: f32) -> u64 {
        u64::from(value.to_bits())
    }

    #[test]
    fn integers_extend_and_chop() {
        assert_eq!(run("cvt.s64.s32 %d0, %r1;", 0x8000_0000), 0xffff_ffff_8000_0000);
        assert_eq!(run("cvt.u64.u32 %d0, %r1;", 0x8000_0000), 0x8000_0000);
        assert_eq!(run("cvt.u64.s32 %d0, %r1;", 0x8000_0000), 0xffff_ffff_8000_0000);
        assert_eq!(run("cvt.u16.u32 %h0, %r1;", 0x1234_5678), 0x5678);
        assert_eq!(run("cvt.s32.s8 %r0, %r1;", 0x1234_56f8), 0xffff_fff8);
        assert_eq!(run("cvt.u32.u8 %r0, %h1;", 0x56f8), 0xf8);
        assert_eq!(run("cvt.s8.s32 %r0, %r1;", 0x80), 0xffff_ff80, "extended to the register");
        assert_eq!(run("cvt.u8.s32 %h0, %r1;", 0xffff_ffff), 0xff);
        assert_eq!(run("cvt.s16.s8 %h0, %b1;", 0x80), 0xff80);
        assert_eq!(run("cvt.sat.u8.s32 %r0, %r1;", 0xffff_ffff), 0);
        assert_eq!(run("cvt.sat.s8.s32 %r0, %r1;", 0xffff_ff00), 0xffff_ff80);
        assert_eq!(run("cvt.sat.s32.u32 %r0, %r1;", 0xffff_ffff), 0x7fff_ffff);
    }

    #[test]
    fn floats_become_integers() {
        assert_eq!(run("cvt.rzi.s32.f32 %r0, %r1;", single(-2.9)), (-2i32) as u32 as u64);
        assert_eq!(run("cvt.rni.s32.f32 %r0, %r1;", single(2.5)), 2);
        assert_eq!(run("cvt.rpi.u32.f32 %r0, %r1;", single(2.1)), 3);
        assert_eq!(run("cvt.rmi.s64.f32 %d0, %r1;", single(-2.1)), (-3i64) as u64);
        assert_eq!(run("cvt.rzi.u32.f32 %r0, %r1;", single(-2.1)), 0);
        assert_eq!(run("cvt.rzi.s32.f32 %r0, %r1;", single(f32::NAN)), 0);
        assert_eq!(run("cvt.rzi.s64.f32 %d0, %r1;", single(f32::NAN)), 1 << 63);
        assert_eq!(run("cvt.rzi.u8.f32 %r0, %r1;", single(300.0)), 255);
        assert_eq!(run("cvt.rpi.ftz.s32.f32 %r0, %r1;", 1), 0);
        assert_eq!(run("cvt.rpi.s32.f32 %r0, %r1;", 1), 1);
        assert_eq!(run("cvt.rzi.s32.f16 %r0, %h1;", 0xc500), (-5i32) as u32 as u64);
        assert_eq!(run("cvt.rzi.u16.bf16 %h0, %h1;", 0x4120), 10);
    }

    #[test]
    fn integers_become_floats() {
        assert_eq!(run("cvt.rn.f32.s32 %r0, %r1;", 0xffff_ffff), single(-1.0));
        assert_eq!(run("cvt.rz.f32.u32 %r0, %r1;", 0xffff_ffff), single(4294967040.0));
        assert_eq!(run("cvt.rn.f64.u64 %d0, %d1;", u64::MAX), (u64::MAX as f64).to_bits());
        assert_eq!(run("cvt.rn.f16.s8 %h0, %b1;", 0xff), 0xbc00);
        assert_eq!(run("cvt.rn.sat.f32.s32 %r0, %r1;", 7), single(1.0));
        assert_eq!(run("cvt.rp.bf16.u32 %h0, %r1;", 257), 0x4381);
    }

    #[test]
    fn floats_become_floats() {
        assert_eq!(run("cvt.f32.f16 %r0, %h1;", 0x3c00), single(1.0));
        assert_eq!(run("cvt.f32.bf16 %r0, %h1;", 0x3f80), single(1.0));
        assert_eq!(run("cvt.f64.f32 %d0, %r1;", single(1.5)), 1.5f64.to_bits());
        assert_eq!(run("cvt.rz.f32.f64 %r0, %d1;", (1.0 + 1e-10f64).to_bits()), single(1.0));
        assert_eq!(run("cvt.rp.f32.f64 %r0, %d1;", (1.0 + 1e-10f64).to_bits()), single(1.0) + 1);
        assert_eq!(run("cvt.rn.f16.f32 %h0, %r1;", single(65520.0)), 0x7c00);
        assert_eq!(run("cvt.rz.f16.f32 %h0, %r1;", single(65520.0)), 0x7bff);
        assert_eq!(run("cvt.rn.bf16.f32 %h0, %r1;", 0x3f80_8000), 0x3f80);
        assert_eq!(run("cvt.rn.bf16.f32 %h0, %r1;", single(f32::NAN)), 0x7fff);
        assert_eq!(run("cvt.rn.f32.f64 %r0, %d1;", 0x7ff0_65c1_57c4_e5d9), 0x7fc3_2e0a);
        assert_eq!(run("cvt.f64.f32 %d0, %r1;", 0xff80_0001), 0xfff8_0000_2000_0000);
        assert_eq!(run("cvt.ftz.f64.f32 %d0, %r1;", 0xff80_0001), 0x7fff_ffff_e000_0000);
        assert_eq!(run("cvt.ftz.f32.bf16 %r0, %h1;", 0xffa0), 0x7fff_ffff);
        assert_eq!(run("cvt.rn.f16.f64 %h0, %d1;", (1.0 + 2f64.powi(-11) + 2f64.powi(-50)).to_bits()), 0x3c01, "rounded once");
        assert_eq!(run("cvt.rni.f32.f32 %r0, %r1;", single(-0.4)), single(-0.0));
        assert_eq!(run("cvt.rmi.f64.f64 %d0, %d1;", (-0.4f64).to_bits()), (-1.0f64).to_bits());
        assert_eq!(run("cvt.sat.f32.f32 %r0, %r1;", single(-3.0)), 0);
        assert_eq!(run("cvt.ftz.f64.f32 %d0, %r1;", 0x8000_0001), 1 << 63);
        assert_eq!(run("cvt.rn.ftz.f32.f64 %r0, %d1;", 1e-40f64.to_bits()), 0);
        assert_eq!(run("cvt.ftz.f32.f16 %r0, %h1;", 1), single(2f32.powi(-24)), "a subnormal `.f16` is kept");
        assert_eq!(run("cvt.rp.ftz.f16.f32 %h0, %r1;", 1), 0);
    }

    /// Converts every `.f16` and `.bf16` to `.f32` and back, and compares with an independent implementation.
    #[test]
    fn sixteen_bits_there_and_back() {
        let mut harness = with_registers();
        for base in (0..=0xffffu64).step_by(32) {
            harness.define("%h1", Type::B16, |lane| base + lane as u64);
            for name in ["f16", "bf16"] {
                harness.run(&format!("cvt.f32.{name} %r0, %h1;")).unwrap();
                harness.run(&format!("cvt.rn.{name}.f32 %h0, %r0;")).unwrap();
                for lane in 0..32 {
                    let bits = (base + lane as u64) as u16;
                    let expected = if name == "f16" { half::f16::from_bits(bits).to_f32() } else { half::bf16::from_bits(bits).to_f32() };
                    let (wide, back) = (harness.value("%r0")[lane], harness.value("%h0")[lane]);
                    if expected.is_nan() {
                        let nan = if name == "f16" { 0x7fff_ffff } else { u64::from(bits) << 16 };
                        assert_eq!((wide, back), (nan, 0x7fff));
                    } else {
                        assert_eq!((wide, back), (single(expected), u64::from(bits)));
                    }
                }
            }
        }
    }

    #[test]
    fn forms_that_ptx_lacks_are_refused() {
        for text in [
            "cvt.u32.f32 %r0, %r1;",
            "cvt.rn.u32.f32 %r0, %r1;",
            "cvt.f32.u32 %r0, %r1;",
            "cvt.rn.f64.f32 %d0, %r1;",
            "cvt.f32.f64 %r0, %d1;",
            "cvt.rn.u32.u16 %r0, %h1;",
            "cvt.ftz.f64.f16 %d0, %h1;",
            "cvt.b32.u32 %r0, %r1;",
            "cvt.sat.s64.u32 %d0, %r1;",
            "cvt.sat.f32.bf16 %r0, %h1;",
            "cvt.u64.u32 %r0, %r1;",
            "cvt.u32.u64 %r0, %r1;",
            "cvt.rn.relu.f64.f32 %d0, %r1;",
        ] {
            assert!(refusal(text).is_some(), "{text}");
        }
    }
}
