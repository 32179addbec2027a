//! `ex2 lg2 sin cos tanh`, the approximate forms of `rcp sqrt rsqrt div`, `testp` and `copysign` (PTX ISA, 9.7.3 and 9.7.4).

use crate::counters::Class;
use crate::instructions::float::Modifiers;
use crate::instructions::lanewise::{Decoded, lanewise, no_type, sources, type_of};
use crate::instructions::{Form, Unsupported};
use crate::numerics::approximate;
use crate::numerics::float::{Bf16, F16, F32, F64, Float};
use crate::numerics::small_float::Rounding;
use crate::ptx::Type;

/// `ex2.approx{.ftz}.f32`, and the 16-bit types: `.f16` never flushes subnormals, `.bf16` always does.
pub(super) fn ex2(form: &mut Form<'_>) -> Decoded {
    approx(form)?;
    let ty = type_of(form, &[Type::F32, Type::F16, Type::F16x2, Type::Bf16, Type::Bf16x2])?;
    let flushes = !matches!(ty, Type::F16 | Type::F16x2) && form.flag("ftz");
    if matches!(ty, Type::Bf16 | Type::Bf16x2) && !flushes {
        return Err(form.error(format!("`ex2.approx{ty}` is written with `.ftz`")));
    }
    function(form, ty, flushes, approximate::ex2)
}

/// `lg2.approx{.ftz}.f32`
pub(super) fn lg2(form: &mut Form<'_>) -> Decoded {
    single(form, approximate::lg2)
}

/// `sin.approx{.ftz}.f32`
pub(super) fn sin(form: &mut Form<'_>) -> Decoded {
    single(form, approximate::sin)
}

/// `cos.approx{.ftz}.f32`
pub(super) fn cos(form: &mut Form<'_>) -> Decoded {
    single(form, approximate::cos)
}

/// `tanh.approx`
pub(super) fn tanh(form: &mut Form<'_>) -> Decoded {
    approx(form)?;
    let ty = type_of(form, &[Type::F32, Type::F16, Type::F16x2, Type::Bf16, Type::Bf16x2])?;
    function(form, ty, false, approximate::tanh)
}

/// `rcp.approx{.ftz}.f32`, `rcp.approx.ftz.f64`; the caller has taken `.approx`.
pub(super) fn rcp(form: &mut Form<'_>) -> Decoded {
    let ty = type_of(form, &[Type::F32, Type::F64])?;
    let flushes = form.flag("ftz");
    match ty {
        Type::F64 if !flushes => Err(form.error("`rcp.approx.f64` is written with `.ftz`")),
        Type::F64 => coarse(form, approximate::rcp),
        _ => function(form, ty, flushes, approximate::rcp),
    }
}

/// `sqrt.approx{.ftz}.f32`; the caller has taken `.approx`.
pub(super) fn sqrt(form: &mut Form<'_>) -> Decoded {
    let ty = type_of(form, &[Type::F32])?;
    let flushes = form.flag("ftz");
    function(form, ty, flushes, approximate::sqrt)
}

/// `rsqrt.approx{.ftz}.f32`, `rsqrt.approx{.ftz}.f64`
pub(super) fn rsqrt(form: &mut Form<'_>) -> Decoded {
    approx(form)?;
    let ty = type_of(form, &[Type::F32, Type::F64])?;
    let flushes = form.flag("ftz");
    if ty == Type::F64 && flushes { coarse(form, approximate::rsqrt) } else { function(form, ty, flushes, approximate::rsqrt) }
}

/// `div.approx{.ftz}.f32`; the caller has taken the type and `.approx`.
pub(super) fn div(form: &mut Form<'_>) -> Decoded {
    let modifiers = Modifiers { flushes: form.flag("ftz"), ..Modifiers::NONE };
    let destination = form.destination(Type::F32)?;
    let sources = sources(form, [Type::F32; 2])?;
    lanewise(Class::Special, destination, sources, move |operands| {
        modifiers
            .apply::<2, F32>(operands, |[a, b]| F32::round(approximate::div(F32::value(a), F32::value(b)), Rounding::NearestEven, &[a, b]))
    })
}

fn approx(form: &mut Form<'_>) -> Result<(), Unsupported> {
    if form.flag("approx") { Ok(()) } else { Err(form.error(format!("`{}` is written with `.approx`", form.opcode()))) }
}

fn single(form: &mut Form<'_>, compute: fn(f64) -> f64) -> Decoded {
    approx(form)?;
    let ty = type_of(form, &[Type::F32])?;
    let flushes = form.flag("ftz");
    function(form, ty, flushes, compute)
}

/// A function of one operand, computed in `f64` and rounded.
fn function(form: &mut Form<'_>, ty: Type, flushes: bool, compute: fn(f64) -> f64) -> Decoded {
    let destination = form.destination(ty)?;
    let sources = sources(form, [ty])?;
    let modifiers = Modifiers { flushes, ..Modifiers::NONE };
    macro_rules! scalar {
        ($format:ty, $shift:expr) => {
            |a: u64| {
                let low = a >> $shift & (<$format>::SIGN | (<$format>::SIGN - 1));
                modifiers.apply::<1, $format>([low], |[a]| <$format>::round(compute(<$format>::value(a)), Rounding::NearestEven, &[a]))
                    << $shift
            }
        };
    }
    match ty {
        Type::F16 => lanewise(Class::Special, destination, sources, move |[a]| scalar!(F16, 0)(a)),
        Type::F16x2 => lanewise(Class::Special, destination, sources, move |[a]| scalar!(F16, 16)(a) | scalar!(F16, 0)(a)),
        Type::Bf16 => lanewise(Class::Special, destination, sources, move |[a]| scalar!(Bf16, 0)(a)),
        Type::Bf16x2 => lanewise(Class::Special, destination, sources, move |[a]| scalar!(Bf16, 16)(a) | scalar!(Bf16, 0)(a)),
        Type::F32 => lanewise(Class::Special, destination, sources, move |[a]| scalar!(F32, 0)(a)),
        Type::F64 => lanewise(Class::Special, destination, sources, move |[a]| scalar!(F64, 0)(a)),
        _ => Err(no_type(form, ty)),
    }
}

/// The NaN result of the `.ftz` forms of `.f64`.
const COARSE_NAN: u64 = 0x7fff_ffff_0000_0000;

/// The `.ftz` forms of `.f64`: operand and result have only an upper half, and subnormals are flushed.
fn coarse(form: &mut Form<'_>, compute: fn(f64) -> f64) -> Decoded {
    let destination = form.destination(Type::F64)?;
    let sources = sources(form, [Type::F64])?;
    lanewise(Class::Special, destination, sources, move |[a]| {
        let a = F64::flush(approximate::upper_half(a));
        let result = compute(F64::value(a));
        if result.is_nan() { COARSE_NAN } else { F64::flush(approximate::upper_half(result.to_bits())) }
    })
}

/// The properties that `testp` can test.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Property {
    Finite,
    Infinite,
    Number,
    NotANumber,
    Normal,
    Subnormal,
}

const PROPERTIES: [(&str, Property); 6] = [
    ("finite", Property::Finite),
    ("infinite", Property::Infinite),
    ("number", Property::Number),
    ("notanumber", Property::NotANumber),
    ("normal", Property::Normal),
    ("subnormal", Property::Subnormal),
];

/// `testp.property`
pub(super) fn testp(form: &mut Form<'_>) -> Decoded {
    let property = form.one_of(&PROPERTIES).ok_or_else(|| form.error("`testp` needs a property, such as `.finite`"))?;
    let ty = type_of(form, &[Type::F32, Type::F64])?;
    let destination = form.destination(Type::Pred)?;
    let sources = sources(form, [ty])?;
    if ty == Type::F32 {
        lanewise(Class::Float, destination, sources, move |[a]| u64::from(has::<F32>(a, property)))
    } else {
        lanewise(Class::Float, destination, sources, move |[a]| u64::from(has::<F64>(a, property)))
    }
}

fn has<T: Float>(bits: u64, property: Property) -> bool {
    let magnitude = bits & !T::SIGN;
    let infinity = T::FORMAT.infinity();
    match property {
        Property::Finite => magnitude < infinity,
        Property::Infinite => magnitude == infinity,
        Property::Number => !T::is_nan(bits),
        Property::NotANumber => T::is_nan(bits),
        // `testp.normal` also accepts a zero (PTX ISA, 9.7.3.1).
        Property::Normal => magnitude < infinity && !T::FORMAT.is_subnormal(bits),
        Property::Subnormal => T::FORMAT.is_subnormal(bits),
    }
}

/// `copysign`: `b` with the sign of `a`.
pub(super) fn copysign(form: &mut Form<'_>) -> Decoded {
    let ty = type_of(form, &[Type::F32, Type::F64])?;
    let destination = form.destination(ty)?;
    let sources = sources(form, [ty; 2])?;
    let sign = if ty == Type::F32 { F32::SIGN } else { F64::SIGN };
    lanewise(Class::Float, destination, sources, move |[a, b]| a & sign | b & !sign)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::instructions::harness::{refusal, with_registers};

    fn run(text: &str, a: u64, b: u64) -> u64 {
        let mut harness = with_registers();
        for (number, value) in [(1, a), (2, b)] {
            harness.define(&format!("%d{number}"), Type::B64, |_| value);
            harness.define(&format!("%r{number}"), Type::B32, |_| value & 0xffff_ffff);
            harness.define(&format!("%h{number}"), Type::B16, |_| value & 0xffff);
        }
        harness.run(text).unwrap();
        harness.value(&text.split_whitespace().nth(1).unwrap()[..3])[0]
    }

    fn single(value: f32) -> u64 {
        u64::from(value.to_bits())
    }

    #[test]
    fn functions() {
        assert_eq!(run("ex2.approx.f32 %r0, %r1;", single(-3.0), 0), single(0.125));
        assert_eq!(run("ex2.approx.f32 %r0, %r1;", single(-140.0), 0), 1 << 9);
        assert_eq!(run("ex2.approx.ftz.f32 %r0, %r1;", single(-140.0), 0), 0);
        assert_eq!(run("ex2.approx.f32 %r0, %r1;", single(200.0), 0), single(f32::INFINITY));
        assert_eq!(run("ex2.approx.ftz.bf16x2 %r0, %r1;", 0x3f80_4000, 0), 0x4000_4080);
        assert_eq!(run("ex2.approx.f16 %h0, %h1;", 0x8000, 0), 0x3c00);
        assert_eq!(run("lg2.approx.f32 %r0, %r1;", single(-0.0), 0), single(f32::NEG_INFINITY));
        assert_eq!(run("lg2.approx.f32 %r0, %r1;", 1, 0), single(-149.0));
        assert_eq!(run("lg2.approx.ftz.f32 %r0, %r1;", 1, 0), single(f32::NEG_INFINITY));
        assert_eq!(run("lg2.approx.f32 %r0, %r1;", single(-1.0), 0), 0x7fff_ffff);
        assert_eq!(run("sin.approx.f32 %r0, %r1;", single(-0.0), 0), single(-0.0));
        assert_eq!(run("cos.approx.ftz.f32 %r0, %r1;", 1, 0), single(1.0));
        assert_eq!(run("tanh.approx.f16x2 %r0, %r1;", 0x7c00_fc00, 0), 0x3c00_bc00);
        assert_eq!(run("rcp.approx.ftz.f32 %r0, %r1;", 0x8000_0001, 0), single(f32::NEG_INFINITY));
        assert_eq!(run("rsqrt.approx.f32 %r0, %r1;", single(4.0), 0), single(0.5));
        assert_eq!(run("sqrt.approx.f32 %r0, %r1;", single(-0.0), 0), single(-0.0));
        assert_eq!(run("div.approx.f32 %r0, %r1, %r2;", single(6.0), single(3.0)), single(2.0));
        assert_eq!(run("div.approx.f32 %r0, %r1, %r2;", single(f32::INFINITY), single(f32::MAX)), 0x7fff_ffff);
        assert_eq!(run("rsqrt.approx.f64 %d0, %d1;", 4f64.to_bits(), 0), 0.5f64.to_bits());
    }

    #[test]
    fn coarse_functions_use_upper_halves() {
        assert_eq!(run("rcp.approx.ftz.f64 %d0, %d1;", 4f64.to_bits() | 0xffff_ffff, 0), 0.25f64.to_bits());
        let third = run("rcp.approx.ftz.f64 %d0, %d1;", 3f64.to_bits(), 0);
        assert_eq!(third, (1.0 / 3f64).to_bits() & !0xffff_ffff);
        assert_eq!(run("rcp.approx.ftz.f64 %d0, %d1;", 0x8000_0000_ffff_ffff, 0), f64::NEG_INFINITY.to_bits());
        assert_eq!(run("rsqrt.approx.ftz.f64 %d0, %d1;", (-1f64).to_bits(), 0), 0x7fff_ffff_0000_0000);
        assert_eq!(run("rcp.approx.ftz.f64 %d0, %d1;", f64::MAX.to_bits(), 0), 0);
    }

    #[test]
    fn properties() {
        let values = [0.0, 1.0, f32::INFINITY, f32::NAN, f32::from_bits(1)];
        for (property, expected) in [
            ("finite", [1, 1, 0, 0, 1]),
            ("infinite", [0, 0, 1, 0, 0]),
            ("number", [1, 1, 1, 0, 1]),
            ("notanumber", [0, 0, 0, 1, 0]),
            ("normal", [1, 1, 0, 0, 0]),
            ("subnormal", [0, 0, 0, 0, 1]),
        ] {
            let got = values.map(|value| run(&format!("testp.{property}.f32 %p0, %r1;"), single(value), 0));
            assert_eq!(got, expected, "{property}");
        }
        assert_eq!(run("copysign.f32 %r0, %r1, %r2;", single(-0.0), single(3.0)), single(-3.0));
        assert_eq!(run("copysign.f64 %d0, %d1, %d2;", 0, (-3f64).to_bits()), 3f64.to_bits());
    }

    #[test]
    fn forms_that_ptx_lacks_are_refused() {
        for text in [
            "ex2.f32 %r0, %r1;",
            "ex2.approx.bf16 %h0, %h1;",
            "ex2.approx.ftz.f16 %h0, %h1;",
            "ex2.approx.f64 %d0, %d1;",
            "tanh.approx.ftz.f32 %r0, %r1;",
            "rcp.approx.f64 %d0, %d1;",
            "sqrt.approx.f64 %d0, %d1;",
            "testp.f32 %p0, %r1;",
            "copysign.f16 %h0, %h1, %h2;",
        ] {
            assert!(refusal(text).is_some(), "{text}");
        }
    }
}
