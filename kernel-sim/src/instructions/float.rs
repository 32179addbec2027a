//! Floating-point arithmetic (PTX ISA, 9.7.3 to 9.7.5). Approximate functions are in `approximate.rs`.
//!
//! Each operation is a type with a generic [`Operation::compute`], so the compiler emits a specialised loop over the lanes for each format.

use crate::counters::Class;
use crate::instructions::lanewise::{Decoded, lanewise, no_type, sources, type_of};
use crate::instructions::{Form, Unsupported};
use crate::numerics::float::{Bf16, Extremum, F16, F32, F64, Float, extremum, sum_to_odd};
use crate::numerics::small_float::Rounding;
use crate::ptx::Type;

/// The computation of an instruction with `N` operands, in any format.
pub(super) trait Operation<const N: usize>: 'static {
    fn compute<T: Float>(operands: [u64; N], rounding: Rounding) -> u64;

    /// The exact result, or the result rounded to odd. Only for operations whose result can lie between a subnormal and a normal number.
    fn exact<T: Float>(_: [u64; N]) -> Option<f64> {
        None
    }
}

macro_rules! operations {
    ($($name:ident($($operand:ident),+; $rounding:pat) = $result:expr;)*) => {
        $(
            struct $name;
            impl Operation<{ [$(stringify!($operand)),+].len() }> for $name {
                fn compute<T: Float>([$($operand),+]: [u64; { [$(stringify!($operand)),+].len() }], rounding: Rounding) -> u64 {
                    let $rounding = rounding;
                    $result
                }
            }
        )*
    };
}

operations! {
    Add(a, b; rounding) = T::add(a, b, rounding);
    Sub(a, b; rounding) = T::add(a, if T::is_nan(b) { b } else { b ^ T::SIGN }, rounding);
    FmaOutOfBounds(a, b, c; rounding) = if is_out_of_bounds(a) || is_out_of_bounds(b) { 0 } else { T::fma(a, b, c, rounding) };
    Div(a, b; rounding) = T::div(a, b, rounding);
    Reciprocal(a; rounding) = T::div(T::ONE, a, rounding);
    Sqrt(a; rounding) = T::sqrt(a, rounding);
    Abs(a; _) = change_sign::<T>(a, a & !T::SIGN);
    Neg(a; _) = change_sign::<T>(a, a ^ T::SIGN);
    Min(a, b; _) = extremum::<T>(a, b, Extremum::Min, false);
    Max(a, b; _) = extremum::<T>(a, b, Extremum::Max, false);
    MinNan(a, b; _) = extremum::<T>(a, b, Extremum::Min, true);
    MaxNan(a, b; _) = extremum::<T>(a, b, Extremum::Max, true);
    MinAbs(a, b; _) = with_signs::<T>(a, b, Extremum::Min, false);
    MaxAbs(a, b; _) = with_signs::<T>(a, b, Extremum::Max, false);
    MinAbsNan(a, b; _) = with_signs::<T>(a, b, Extremum::Min, true);
    MaxAbsNan(a, b; _) = with_signs::<T>(a, b, Extremum::Max, true);
}

struct Mul;

impl Operation<2> for Mul {
    fn compute<T: Float>([a, b]: [u64; 2], rounding: Rounding) -> u64 {
        T::mul(a, b, rounding)
    }

    fn exact<T: Float>([a, b]: [u64; 2]) -> Option<f64> {
        Some(T::value(a) * T::value(b))
    }
}

struct Fma;

impl Operation<3> for Fma {
    fn compute<T: Float>([a, b, c]: [u64; 3], rounding: Rounding) -> u64 {
        T::fma(a, b, c, rounding)
    }

    fn exact<T: Float>([a, b, c]: [u64; 3]) -> Option<f64> {
        Some(sum_to_odd(T::value(a) * T::value(b), T::value(c), Rounding::NearestEven))
    }
}

/// Hardware computes `abs` and `neg` as a sum of the changed operand and -0, so the result for a NaN is the NaN that a sum gives.
fn change_sign<T: Float>(a: u64, changed: u64) -> u64 {
    if T::is_nan(a) { T::nan(&[a]) } else { changed }
}

/// Whether the value is the NaN with which a tensor copy fills elements outside the tensor. The ISA does not define its bits; these are
/// those of the hardware.
fn is_out_of_bounds(bits: u64) -> bool {
    bits & 0x7fff == 0x7ff7
}

/// `.xorsign.abs`: compares the magnitudes; the sign of the result is the xor of the signs.
fn with_signs<T: Float>(a: u64, b: u64, which: Extremum, propagates: bool) -> u64 {
    let magnitude = extremum::<T>(a & !T::SIGN, b & !T::SIGN, which, propagates);
    if T::is_nan(magnitude) { magnitude } else { magnitude | (a ^ b) & T::SIGN }
}

/// Whether rounding alone lifted a result to the lowest normal number. For flushing, hardware looks at the result rounded without a lower
/// bound of the exponent.
pub(super) fn is_lifted<T: Float>(result: u64, exact: f64, rounding: Rounding) -> bool {
    let lowest_normal = 1 << T::FORMAT.fraction_bits();
    // The scale is large enough that the minimum exponent of every format is far away.
    let far = f64::from(1 << 20);
    result & !T::SIGN == lowest_normal && T::value(T::round(exact * far, rounding, &[])).abs() < T::value(lowest_normal) * far
}

/// The modifiers of an instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Modifiers {
    pub(super) rounding: Rounding,
    /// Whether subnormal operands and results become zeros.
    pub(super) flushes: bool,
    /// Whether the result is clamped to the range 0 to 1.
    pub(super) saturates: bool,
    /// Whether a negative result becomes 0.
    pub(super) relu: bool,
}

impl Modifiers {
    /// No modifiers.
    pub(super) const NONE: Modifiers = Modifiers { rounding: Rounding::NearestEven, flushes: false, saturates: false, relu: false };

    /// Computes in one format with the modifiers applied.
    #[inline]
    pub(super) fn apply<const N: usize, T: Float>(self, operands: [u64; N], compute: impl Fn([u64; N]) -> u64) -> u64 {
        if !self.flushes {
            return self.finish::<T>(compute(operands));
        }
        T::flush(self.finish::<T>(compute(operands.map(T::flush))))
    }

    /// Computes an operation in one format with the modifiers applied.
    #[inline]
    fn perform<O: Operation<N>, const N: usize, T: Float>(self, operands: [u64; N]) -> u64 {
        self.apply::<N, T>(operands, |operands| {
            let result = O::compute::<T>(operands, self.rounding);
            let is_lifted = self.flushes && O::exact::<T>(operands).is_some_and(|exact| is_lifted::<T>(result, exact, self.rounding));
            if is_lifted { result & T::SIGN } else { result }
        })
    }

    fn finish<T: Float>(self, result: u64) -> u64 {
        if self.saturates {
            T::saturate(result)
        } else if self.relu {
            T::relu(result)
        } else {
            result
        }
    }
}

const ROUNDINGS: [(&str, Rounding); 4] =
    [("rn", Rounding::NearestEven), ("rz", Rounding::Zero), ("rm", Rounding::Down), ("rp", Rounding::Up)];

/// Takes the rounding mode, if the type supports it; 16-bit types support only `.rn`.
fn rounding(form: &mut Form<'_>, ty: Type) -> Option<Rounding> {
    let known = if matches!(ty, Type::F32 | Type::F64) { &ROUNDINGS[..] } else { &ROUNDINGS[..1] };
    form.one_of(known)
}

fn is_half(ty: Type) -> bool {
    matches!(ty, Type::F16 | Type::F16x2)
}

fn is_bfloat(ty: Type) -> bool {
    matches!(ty, Type::Bf16 | Type::Bf16x2)
}

/// Takes the modifiers of `add`, `sub`, `mul` and `fma`.
fn modifiers(form: &mut Form<'_>, ty: Type) -> Modifiers {
    let has_flags = ty == Type::F32 || is_half(ty);
    Modifiers {
        rounding: rounding(form, ty).unwrap_or(Rounding::NearestEven),
        flushes: has_flags && form.flag("ftz"),
        saturates: has_flags && form.flag("sat"),
        relu: false,
    }
}

/// Takes the destination and `N` operands of this type. For a packed type, both halves are computed.
pub(super) fn operation<O: Operation<N>, const N: usize>(form: &mut Form<'_>, ty: Type, modifiers: Modifiers) -> Decoded {
    let destination = form.destination(ty)?;
    let sources = sources(form, [ty; N])?;
    macro_rules! scalar {
        ($format:ty) => {
            lanewise(Class::Float, destination, sources, move |operands| modifiers.perform::<O, N, $format>(operands))
        };
    }
    macro_rules! pair {
        ($format:ty) => {
            lanewise(Class::Float, destination, sources, move |operands| {
                let half = |operands| modifiers.perform::<O, N, $format>(operands);
                half(operands.map(|bits| bits >> 16)) << 16 | half(operands.map(|bits| bits & 0xffff))
            })
        };
    }
    match ty {
        Type::F16 => scalar!(F16),
        Type::F16x2 => pair!(F16),
        Type::Bf16 => scalar!(Bf16),
        Type::Bf16x2 => pair!(Bf16),
        Type::F32 => scalar!(F32),
        Type::F64 => scalar!(F64),
        _ => Err(no_type(form, ty)),
    }
}

/// `add{.rnd}{.ftz}{.sat}`
pub(super) fn add(form: &mut Form<'_>, ty: Type) -> Decoded {
    let modifiers = modifiers(form, ty);
    operation::<Add, 2>(form, ty, modifiers)
}

/// `sub{.rnd}{.ftz}{.sat}`
pub(super) fn sub(form: &mut Form<'_>, ty: Type) -> Decoded {
    let modifiers = modifiers(form, ty);
    operation::<Sub, 2>(form, ty, modifiers)
}

/// `mul{.rnd}{.ftz}{.sat}`
pub(super) fn mul(form: &mut Form<'_>, ty: Type) -> Decoded {
    let modifiers = modifiers(form, ty);
    operation::<Mul, 2>(form, ty, modifiers)
}

/// `fma.rnd{.ftz}{.sat}`; 16-bit types also have `.relu` and `.oob`.
pub(super) fn fma(form: &mut Form<'_>) -> Decoded {
    let ty = form.ty()?;
    let Some(rounding) = rounding(form, ty) else { return Err(needs_rounding(form)) };
    let is_16_bit = is_half(ty) || is_bfloat(ty);
    let out_of_bounds = is_16_bit && form.flag("oob");
    let relu = is_16_bit && form.flag("relu");
    let has_flags = (ty == Type::F32 || is_half(ty)) && !out_of_bounds;
    let modifiers = Modifiers { rounding, flushes: has_flags && form.flag("ftz"), saturates: has_flags && !relu && form.flag("sat"), relu };
    if out_of_bounds { operation::<FmaOutOfBounds, 3>(form, ty, modifiers) } else { operation::<Fma, 3>(form, ty, modifiers) }
}

/// `mad.rnd{.ftz}{.sat}.f32`, `mad.rnd.f64`: a synonym of `fma`.
pub(super) fn mad(form: &mut Form<'_>, ty: Type) -> Decoded {
    check(form, ty, &[Type::F32, Type::F64])?;
    let Some(rounding) = rounding(form, ty) else { return Err(needs_rounding(form)) };
    let modifiers = Modifiers { rounding, ..modifiers(form, ty) };
    operation::<Fma, 3>(form, ty, modifiers)
}

/// `div.rnd`; `div.full` and `div.approx` results are within their documented 2 ulp.
pub(super) fn div(form: &mut Form<'_>, ty: Type) -> Decoded {
    check(form, ty, &[Type::F32, Type::F64])?;
    if ty == Type::F32 && form.flag("approx") {
        return super::approximate::div(form);
    }
    let full = ty == Type::F32 && form.flag("full");
    let rounding = if full { Some(Rounding::NearestEven) } else { rounding(form, ty) };
    let Some(rounding) = rounding else { return Err(needs_rounding(form)) };
    let modifiers = Modifiers { rounding, flushes: ty == Type::F32 && form.flag("ftz"), ..Modifiers::NONE };
    operation::<Div, 2>(form, ty, modifiers)
}

/// `rcp.rnd`
pub(super) fn rcp(form: &mut Form<'_>) -> Decoded {
    if form.flag("approx") {
        return super::approximate::rcp(form);
    }
    correctly_rounded::<Reciprocal>(form)
}

/// `sqrt.rnd`
pub(super) fn sqrt(form: &mut Form<'_>) -> Decoded {
    if form.flag("approx") {
        return super::approximate::sqrt(form);
    }
    correctly_rounded::<Sqrt>(form)
}

fn correctly_rounded<O: Operation<1>>(form: &mut Form<'_>) -> Decoded {
    let ty = type_of(form, &[Type::F32, Type::F64])?;
    let Some(rounding) = rounding(form, ty) else { return Err(needs_rounding(form)) };
    let modifiers = Modifiers { rounding, flushes: ty == Type::F32 && form.flag("ftz"), ..Modifiers::NONE };
    operation::<O, 1>(form, ty, modifiers)
}

/// `abs{.ftz}`
pub(super) fn abs(form: &mut Form<'_>, ty: Type) -> Decoded {
    let modifiers = flushing(form, ty);
    operation::<Abs, 1>(form, ty, modifiers)
}

/// `neg{.ftz}`
pub(super) fn neg(form: &mut Form<'_>, ty: Type) -> Decoded {
    let modifiers = flushing(form, ty);
    operation::<Neg, 1>(form, ty, modifiers)
}

fn flushing(form: &mut Form<'_>, ty: Type) -> Modifiers {
    Modifiers { flushes: (ty == Type::F32 || is_half(ty)) && form.flag("ftz"), ..Modifiers::NONE }
}

/// `min{.ftz}{.NaN}{.xorsign.abs}`
pub(super) fn min(form: &mut Form<'_>, ty: Type) -> Decoded {
    let modifiers = flushing(form, ty);
    match variant(form, ty)? {
        (false, false) => operation::<Min, 2>(form, ty, modifiers),
        (true, false) => operation::<MinNan, 2>(form, ty, modifiers),
        (false, true) => operation::<MinAbs, 2>(form, ty, modifiers),
        (true, true) => operation::<MinAbsNan, 2>(form, ty, modifiers),
    }
}

/// `max{.ftz}{.NaN}{.xorsign.abs}`
pub(super) fn max(form: &mut Form<'_>, ty: Type) -> Decoded {
    let modifiers = flushing(form, ty);
    match variant(form, ty)? {
        (false, false) => operation::<Max, 2>(form, ty, modifiers),
        (true, false) => operation::<MaxNan, 2>(form, ty, modifiers),
        (false, true) => operation::<MaxAbs, 2>(form, ty, modifiers),
        (true, true) => operation::<MaxAbsNan, 2>(form, ty, modifiers),
    }
}

/// Takes `.NaN` and `.xorsign.abs`.
fn variant(form: &mut Form<'_>, ty: Type) -> Result<(bool, bool), Unsupported> {
    if ty == Type::F64 {
        return Ok((false, false));
    }
    let propagates = form.flag("NaN");
    let signs = form.flag("xorsign");
    if signs && !form.flag("abs") {
        return Err(form.error("`.xorsign` is written `.xorsign.abs`"));
    }
    Ok((propagates, signs))
}

fn check(form: &Form<'_>, ty: Type, known: &[Type]) -> Result<(), Unsupported> {
    if known.contains(&ty) { Ok(()) } else { Err(no_type(form, ty)) }
}

fn needs_rounding(form: &Form<'_>) -> Unsupported {
    form.error(format!("`{}` needs a rounding, such as `.rn`", form.opcode()))
}

#[cfg(test)]
mod tests {
    use crate::instructions::harness::{refusal, with_registers};
    use crate::ptx::Type;

    fn run(text: &str, values: &[u64]) -> u64 {
        let mut harness = with_registers();
        for (index, &value) in values.iter().enumerate() {
            for (letter, ty) in [('d', Type::B64), ('r', Type::B32), ('h', Type::B16)] {
                harness.define(&format!("%{letter}{}", index + 1), ty, |_| value & crate::instructions::lanewise::mask(ty.bits()));
            }
        }
        harness.run(text).unwrap();
        harness.value(&text.split_whitespace().nth(1).unwrap()[..3])[0]
    }

    fn single(value: f32) -> u64 {
        u64::from(value.to_bits())
    }

    #[test]
    fn modifiers_reach_the_arithmetic() {
        let (one, tiny) = (single(1.0), single(1e-20));
        assert_eq!(run("add.f32 %r0, %r1, %r2;", &[one, tiny]), one);
        assert_eq!(run("add.rp.f32 %r0, %r1, %r2;", &[one, tiny]), one + 1);
        assert_eq!(run("sub.rz.f32 %r0, %r1, %r2;", &[one, tiny]), one - 1);
        assert_eq!(run("add.sat.f32 %r0, %r1, %r2;", &[one, one]), one);
        assert_eq!(run("mul.f32 %r0, %r1, %r2;", &[tiny, tiny]), single(1e-20 * 1e-20));
        assert_eq!(run("mul.ftz.f32 %r0, %r1, %r2;", &[tiny, tiny]), 0);
        assert_eq!(run("mul.ftz.f32 %r0, %r1, %r2;", &[0x807f_ffff, single(1e30)]), 0x8000_0000);
        assert_eq!(
            run("fma.rn.f32 %r0, %r1, %r1, %r2;", &[single(1.0 + f32::EPSILON), single(-1.0)]),
            single(f32::EPSILON * 2.0 + f32::EPSILON * f32::EPSILON)
        );
        assert_eq!(run("fma.rn.f64 %d0, %d1, %d1, 0dBFF0000000000000;", &[2f64.to_bits()]), 3f64.to_bits());
        assert_eq!(run("mad.rn.f64 %d0, %d1, %d1, %d1;", &[2f64.to_bits()]), 6f64.to_bits());
        assert_eq!(run("div.rn.f32 %r0, %r1, %r2;", &[one, single(3.0)]), single(1.0 / 3.0));
        assert_eq!(run("div.full.f32 %r0, %r1, %r2;", &[one, single(3.0)]), single(1.0 / 3.0));
        assert_eq!(run("rcp.rz.f32 %r0, %r1;", &[single(3.0)]), single(1.0 / 3.0) - 1);
        assert_eq!(run("sqrt.rn.f64 %d0, %d1;", &[2f64.to_bits()]), 2f64.sqrt().to_bits());
    }

    #[test]
    fn sixteen_bits_and_pairs() {
        assert_eq!(run("add.f16 %h0, %h1, %h2;", &[0x3c00, 0x3c00]), 0x4000);
        assert_eq!(run("mul.bf16 %h0, %h1, %h2;", &[0x4000, 0x3f80]), 0x4000);
        assert_eq!(run("add.f16x2 %r0, %r1, %r2;", &[0x3c00_4000, 0x4000_3c00]), 0x4200_4200);
        assert_eq!(run("sub.bf16x2 %r0, %r1, %r2;", &[0x3f80_4000, 0x3f80_3f80]), 0x0000_3f80);
        assert_eq!(run("fma.rn.relu.f16x2 %r0, %r1, %r2, %r3;", &[0xbc00_4000, 0x4000_3c00, 0]), 0x0000_4000);
        assert_eq!(run("fma.rn.sat.f16 %h0, %h1, %h2, %h3;", &[0x4000, 0x4000, 0]), 0x3c00);
        assert_eq!(run("fma.rn.oob.bf16 %h0, %h1, %h2, %h3;", &[0xfff7, 0x3f80, 0x3f80]), 0);
        assert_eq!(run("fma.rn.oob.bf16 %h0, %h1, %h2, %h3;", &[0x7fff, 0x3f80, 0x3f80]), 0x7fff, "another NaN");
        assert_eq!(run("neg.f64 %d0, %d1;", &[0x7ff0_0000_0000_0001]), 0x7ff8_0000_0000_0001);
        assert_eq!(run("add.ftz.f16 %h0, %h1, %h2;", &[0x03ff, 0]), 0);
    }

    #[test]
    fn signs_and_order() {
        assert_eq!(run("neg.f32 %r0, %r1;", &[single(0.0)]), 0x8000_0000);
        assert_eq!(run("neg.f32 %r0, %r1;", &[single(f32::NAN)]), 0x7fff_ffff);
        assert_eq!(run("abs.f16x2 %r0, %r1;", &[0xbc00_8000]), 0x3c00_0000);
        assert_eq!(run("min.f32 %r0, %r1, %r2;", &[single(f32::NAN), single(1.0)]), single(1.0));
        assert_eq!(run("min.NaN.f32 %r0, %r1, %r2;", &[single(f32::NAN), single(1.0)]), 0x7fff_ffff);
        assert_eq!(run("max.f64 %d0, %d1, %d2;", &[(-0.0f64).to_bits(), 0]), 0);
        assert_eq!(run("max.xorsign.abs.f32 %r0, %r1, %r2;", &[single(-3.0), single(2.0)]), single(-3.0));
        assert_eq!(run("min.xorsign.abs.f32 %r0, %r1, %r2;", &[single(-3.0), single(-2.0)]), single(2.0));
        assert_eq!(run("max.NaN.bf16x2 %r0, %r1, %r2;", &[0x7fff_3f80, 0x3f80_4000]), 0x7fff_4000);
        assert_eq!(run("min.ftz.f32 %r0, %r1, %r2;", &[1, single(1.0)]), 0);
    }

    #[test]
    fn forms_that_ptx_lacks_are_refused() {
        for text in [
            "add.ftz.f64 %d0, %d1, %d2;",
            "add.sat.f64 %d0, %d1, %d2;",
            "add.rz.f16 %h0, %h1, %h2;",
            "add.ftz.bf16 %h0, %h1, %h2;",
            "add.relu.f16 %h0, %h1, %h2;",
            "fma.f32 %r0, %r1, %r2, %r3;",
            "fma.rn.relu.f32 %r0, %r1, %r2, %r3;",
            "fma.rn.sat.relu.f16 %h0, %h1, %h2, %h3;",
            "fma.rn.sat.bf16 %h0, %h1, %h2, %h3;",
            "div.f32 %r0, %r1, %r2;",
            "div.full.f64 %d0, %d1, %d2;",
            "div.rn.f16 %h0, %h1, %h2;",
            "sqrt.f32 %r0, %r1;",
            "min.NaN.f64 %d0, %d1, %d2;",
            "abs.ftz.bf16 %h0, %h1;",
            "mad.f16 %h0, %h1, %h2, %h3;",
            "add.tf32 %r0, %r1, %r2;",
        ] {
            assert!(refusal(text).is_some(), "{text}");
        }
    }
}
