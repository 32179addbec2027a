//! Integer arithmetic (PTX ISA, 9.7.1, "Integer Arithmetic Instructions"). Bit fields and bit counts are in `bits.rs`.

use crate::counters::Class;
use crate::instructions::lanewise::{Decoded, binary, mask, no_type, number, ternary, type_of, unary};
use crate::instructions::{Form, Unsupported};
use crate::ptx::Type;

const WORDS: [Type; 6] = [Type::U16, Type::U32, Type::U64, Type::S16, Type::S32, Type::S64];
const SIGNED: [Type; 3] = [Type::S16, Type::S32, Type::S64];
const PAIRS: [Type; 2] = [Type::U16x2, Type::S16x2];

/// `add{.sat}`
pub(super) fn add(form: &mut Form<'_>, ty: Type) -> Decoded {
    if PAIRS.contains(&ty) {
        return binary(form, Class::Integer, [ty; 3], |a, b| by_halves(a, b, |a, b| a.wrapping_add(b)));
    }
    check(form, ty, &WORDS)?;
    if ty == Type::S32 && form.flag("sat") {
        return binary(form, Class::Integer, [ty; 3], |a, b| u64::from((a as i32).saturating_add(b as i32) as u32));
    }
    let mask = mask(ty.bits());
    binary(form, Class::Integer, [ty; 3], move |a, b| a.wrapping_add(b) & mask)
}

/// `sub{.sat}`
pub(super) fn sub(form: &mut Form<'_>, ty: Type) -> Decoded {
    check(form, ty, &WORDS)?;
    if ty == Type::S32 && form.flag("sat") {
        return binary(form, Class::Integer, [ty; 3], |a, b| u64::from((a as i32).saturating_sub(b as i32) as u32));
    }
    let mask = mask(ty.bits());
    binary(form, Class::Integer, [ty; 3], move |a, b| a.wrapping_sub(b) & mask)
}

/// The part of a product that is the result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Part {
    Low,
    High,
    /// The whole product, in a register of twice the width.
    Wide,
}

impl Part {
    /// Takes `.lo`, `.hi`, or `.wide` if the type supports it.
    pub(super) fn take(form: &mut Form<'_>, ty: Type) -> Result<Part, Unsupported> {
        match form.one_of(&[("lo", Part::Low), ("hi", Part::High), ("wide", Part::Wide)]) {
            Some(Part::Wide) if ty.bits() == 64 => Err(form.error(format!("`{}.wide` has no type `{ty}`", form.opcode()))),
            Some(part) => Ok(part),
            None => Err(form.error(format!("`{}` needs `.lo`, `.hi` or `.wide`", form.opcode()))),
        }
    }

    /// The type of the result.
    fn result(self, ty: Type) -> Type {
        match (self, ty.bits()) {
            (Part::Wide, 16) => Type::B32,
            (Part::Wide, _) => Type::B64,
            _ => ty,
        }
    }
}

/// The given part of a product, as the bits of the result's register.
pub(super) fn product(a: u64, b: u64, ty: Type, part: Part) -> u64 {
    // The 128 bits are correct for any 64-bit operands: signed products fit, and unsigned products wrap into the sign bit.
    let product = number(a, ty).wrapping_mul(number(b, ty)) as u128;
    match part {
        Part::Low => product as u64 & mask(ty.bits()),
        Part::High => (product >> ty.bits()) as u64 & mask(ty.bits()),
        Part::Wide => product as u64 & mask(2 * ty.bits()),
    }
}

/// `mul{.hi,.lo,.wide}`
pub(super) fn mul(form: &mut Form<'_>, ty: Type) -> Decoded {
    check(form, ty, &WORDS)?;
    let part = Part::take(form, ty)?;
    let types = [part.result(ty), ty, ty];
    match part {
        Part::Low => {
            let mask = mask(ty.bits());
            binary(form, Class::Integer, types, move |a, b| a.wrapping_mul(b) & mask)
        }
        Part::Wide if ty == Type::U32 => binary(form, Class::Integer, types, |a, b| a.wrapping_mul(b)),
        Part::Wide if ty == Type::S32 => binary(form, Class::Integer, types, |a, b| (i64::from(a as i32) * i64::from(b as i32)) as u64),
        _ => binary(form, Class::Integer, types, move |a, b| product(a, b, ty, part)),
    }
}

/// `mad{.hi,.lo,.wide}`, `mad.hi.sat.s32`
pub(super) fn mad(form: &mut Form<'_>, ty: Type) -> Decoded {
    check(form, ty, &WORDS)?;
    let part = Part::take(form, ty)?;
    let result = part.result(ty);
    let types = [result, ty, ty, result];
    if ty == Type::S32 && part == Part::High && form.flag("sat") {
        return ternary(form, Class::Integer, types, |a, b, c| saturating_sum(product(a, b, Type::S32, Part::High), c));
    }
    let mask = mask(result.bits());
    match part {
        Part::Low => ternary(form, Class::Integer, types, move |a, b, c| a.wrapping_mul(b).wrapping_add(c) & mask),
        _ => ternary(form, Class::Integer, types, move |a, b, c| product(a, b, ty, part).wrapping_add(c) & mask),
    }
}

fn saturating_sum(a: u64, b: u64) -> u64 {
    u64::from((a as i32).saturating_add(b as i32) as u32)
}

/// The low or the high 32 bits of the 48-bit product of two 24-bit numbers.
fn product_24(a: u64, b: u64, ty: Type, part: Part) -> u64 {
    let low = |value: u64| if ty == Type::S32 { i64::from((value as i32) << 8 >> 8) } else { (value & 0xff_ffff) as i64 };
    let product = low(a) * low(b);
    let bits = if part == Part::High { product >> 16 } else { product };
    bits as u64 & mask(32)
}

fn part_24(form: &mut Form<'_>) -> Result<Part, Unsupported> {
    let part = form.one_of(&[("lo", Part::Low), ("hi", Part::High)]);
    part.ok_or_else(|| form.error(format!("`{}` needs `.lo` or `.hi`", form.opcode())))
}

/// `mul24{.hi,.lo}`
pub(super) fn mul24(form: &mut Form<'_>) -> Decoded {
    let ty = type_of(form, &[Type::U32, Type::S32])?;
    let part = part_24(form)?;
    binary(form, Class::Integer, [ty; 3], move |a, b| product_24(a, b, ty, part))
}

/// `mad24{.hi,.lo}`, `mad24.hi.sat.s32`
pub(super) fn mad24(form: &mut Form<'_>) -> Decoded {
    let ty = type_of(form, &[Type::U32, Type::S32])?;
    let part = part_24(form)?;
    if ty == Type::S32 && part == Part::High && form.flag("sat") {
        return ternary(form, Class::Integer, [ty; 4], move |a, b, c| saturating_sum(product_24(a, b, ty, part), c));
    }
    ternary(form, Class::Integer, [ty; 4], move |a, b, c| product_24(a, b, ty, part).wrapping_add(c) & mask(32))
}

/// `sad`: `c + |a - b|`
pub(super) fn sad(form: &mut Form<'_>) -> Decoded {
    let ty = type_of(form, &WORDS)?;
    ternary(form, Class::Integer, [ty; 4], move |a, b, c| {
        let difference = (number(a, ty) - number(b, ty)).unsigned_abs() as u64;
        c.wrapping_add(difference) & mask(ty.bits())
    })
}

/// `div`
pub(super) fn div(form: &mut Form<'_>, ty: Type) -> Decoded {
    check(form, ty, &WORDS)?;
    binary(form, Class::Integer, [ty; 3], move |a, b| quotient_and_remainder(a, b, ty).0)
}

/// `rem`
pub(super) fn rem(form: &mut Form<'_>) -> Decoded {
    let ty = type_of(form, &WORDS)?;
    binary(form, Class::Integer, [ty; 3], move |a, b| quotient_and_remainder(a, b, ty).1)
}

/// The ISA leaves division by zero undefined. Hardware returns all ones for the quotient and for the remainder.
fn quotient_and_remainder(a: u64, b: u64, ty: Type) -> (u64, u64) {
    let mask = mask(ty.bits());
    let (a, b) = (number(a, ty), number(b, ty));
    if b == 0 {
        return (mask, mask);
    }
    // The lowest number divided by -1 is the lowest number, because only the low bits are kept.
    ((a / b) as u64 & mask, (a % b) as u64 & mask)
}

/// `abs`: the lowest number is unchanged.
pub(super) fn abs(form: &mut Form<'_>, ty: Type) -> Decoded {
    check(form, ty, &SIGNED)?;
    unary(form, Class::Integer, [ty; 2], move |a| number(a, ty).unsigned_abs() as u64 & mask(ty.bits()))
}

/// `neg`
pub(super) fn neg(form: &mut Form<'_>, ty: Type) -> Decoded {
    check(form, ty, &SIGNED)?;
    unary(form, Class::Integer, [ty; 2], move |a| a.wrapping_neg() & mask(ty.bits()))
}

/// `min{.relu}`
pub(super) fn min(form: &mut Form<'_>, ty: Type) -> Decoded {
    extremum(form, ty, i128::min)
}

/// `max{.relu}`
pub(super) fn max(form: &mut Form<'_>, ty: Type) -> Decoded {
    extremum(form, ty, i128::max)
}

fn extremum(form: &mut Form<'_>, ty: Type, choose: fn(i128, i128) -> i128) -> Decoded {
    // `.relu` replaces a negative result by 0.
    let floor = if matches!(ty, Type::S32 | Type::S16x2) && form.flag("relu") { 0 } else { i128::MIN };
    if PAIRS.contains(&ty) {
        let half = if ty == Type::U16x2 { Type::U16 } else { Type::S16 };
        return binary(form, Class::Integer, [ty; 3], move |a, b| {
            by_halves(a, b, |a, b| choose(number(a, half), number(b, half)).max(floor) as u64)
        });
    }
    check(form, ty, &WORDS)?;
    binary(form, Class::Integer, [ty; 3], move |a, b| choose(number(a, ty), number(b, ty)).max(floor) as u64 & mask(ty.bits()))
}

/// Computes both 16-bit halves separately.
fn by_halves(a: u64, b: u64, compute: impl Fn(u64, u64) -> u64) -> u64 {
    let half = |shift: u32| (compute(a >> shift & 0xffff, b >> shift & 0xffff) & 0xffff) << shift;
    half(16) | half(0)
}

fn check(form: &Form<'_>, ty: Type, known: &[Type]) -> Result<(), Unsupported> {
    if known.contains(&ty) { Ok(()) } else { Err(no_type(form, ty)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::instructions::harness::{refusal, with_registers};

    /// The result of an instruction on `%d1`, `%d2`, `%d3` (or the `%r` or `%h` registers), with the same operands in all lanes.
    fn run(text: &str, operands: [u64; 3]) -> u64 {
        let mut harness = with_registers();
        for (index, value) in operands.into_iter().enumerate() {
            for (letter, ty) in [('d', Type::B64), ('r', Type::B32), ('h', Type::B16)] {
                harness.define(&format!("%{letter}{}", index + 1), ty, |_| value & mask(ty.bits()));
            }
        }
        harness.run(text).unwrap();
        let destination = text.split_whitespace().nth(1).unwrap().trim_end_matches(',');
        harness.value(destination)[7]
    }

    #[test]
    fn each_lane_has_its_own_values() {
        let mut harness = with_registers();
        harness.define("%r1", Type::B32, |lane| lane as u64);
        harness.run("add.u32 %r0, %r1, -3;").unwrap();
        assert_eq!(harness.value("%r0")[2], 0xffff_ffff);
        assert_eq!(harness.value("%r0")[31], 28);
    }

    #[test]
    fn sums_wrap_or_saturate() {
        assert_eq!(run("add.u16 %h0, %h1, %h2;", [0xffff, 2, 0]), 1);
        assert_eq!(run("add.s64 %d0, %d1, %d2;", [u64::MAX, 2, 0]), 1);
        assert_eq!(run("add.sat.s32 %r0, %r1, %r2;", [0x7fff_ffff, 1, 0]), 0x7fff_ffff);
        assert_eq!(run("sub.sat.s32 %r0, %r1, %r2;", [0x8000_0000, 1, 0]), 0x8000_0000);
        assert_eq!(run("sub.s32 %r0, %r1, %r2;", [0x8000_0000, 1, 0]), 0x7fff_ffff);
        assert_eq!(run("add.u16x2 %r0, %r1, %r2;", [0x0001_ffff, 0x0001_0001, 0]), 0x0002_0000, "no carry between the halves");
    }

    #[test]
    fn products() {
        let (a, b) = (0xfedc_ba98_7654_3210u64, 0x8000_0000_0000_0003u64);
        assert_eq!(run("mul.hi.u64 %d0, %d1, %d2;", [a, b, 0]), ((u128::from(a) * u128::from(b)) >> 64) as u64);
        assert_eq!(run("mul.hi.s64 %d0, %d1, %d2;", [a, b, 0]), ((i128::from(a as i64) * i128::from(b as i64)) >> 64) as u64);
        assert_eq!(run("mul.lo.s64 %d0, %d1, %d2;", [a, b, 0]), a.wrapping_mul(b));
        assert_eq!(run("mul.wide.s32 %d0, %r1, %r2;", [0xffff_ffff, 2, 0]), (-2i64) as u64);
        assert_eq!(run("mul.wide.u32 %d0, %r1, %r2;", [0xffff_ffff, 2, 0]), 0x1_ffff_fffe);
        assert_eq!(run("mul.wide.s16 %r0, %h1, %h2;", [0xffff, 2, 0]), 0xffff_fffe);
        assert_eq!(run("mul.hi.s16 %h0, %h1, %h2;", [0xffff, 2, 0]), 0xffff);
        assert_eq!(run("mul.hi.u16 %h0, %h1, %h2;", [0xffff, 0xffff, 0]), 0xfffe);
        assert_eq!(run("mad.wide.u16 %r0, %h1, %h2, %r3;", [0xffff, 0xffff, 0xffff_ffff]), 0xfffe_0000);
        assert_eq!(run("mad.lo.s32 %r0, %r1, %r2, %r3;", [0xffff_ffff, 5, 3]), 0xffff_fffe);
        assert_eq!(run("mad.hi.sat.s32 %r0, %r1, %r2, %r3;", [0x4000_0000, 8, 0x7fff_fffe]), 0x7fff_ffff);
        assert_eq!(run("mad.hi.s32 %r0, %r1, %r2, %r3;", [0x4000_0000, 8, 0x7fff_fffe]), 0x8000_0000);
    }

    #[test]
    fn products_of_24_bits_ignore_the_upper_byte() {
        assert_eq!(run("mul24.lo.u32 %r0, %r1, %r2;", [0xaa00_0003, 0xbb00_0005, 0]), 15);
        assert_eq!(run("mul24.hi.u32 %r0, %r1, %r2;", [0xff_ffff, 0xff_ffff, 0]), 0xffff_fe00);
        assert_eq!(run("mul24.lo.s32 %r0, %r1, %r2;", [0xff_ffff, 5, 0]), 0xffff_fffb);
        assert_eq!(run("mad24.hi.s32 %r0, %r1, %r2, %r3;", [0xff_ffff, 5, 1]), 0);
    }

    #[test]
    fn division() {
        assert_eq!(run("div.s32 %r0, %r1, %r2;", [(-7i32) as u32 as u64, 2, 0]), (-3i32) as u32 as u64);
        assert_eq!(run("rem.s32 %r0, %r1, %r2;", [(-7i32) as u32 as u64, 2, 0]), 0xffff_ffff);
        assert_eq!(run("div.u32 %r0, %r1, %r2;", [(-7i32) as u32 as u64, 2, 0]), 0x7fff_fffc);
        assert_eq!(run("div.s64 %d0, %d1, %d2;", [1 << 63, u64::MAX, 0]), 1 << 63);
        assert_eq!(run("rem.s64 %d0, %d1, %d2;", [1 << 63, u64::MAX, 0]), 0);
        assert_eq!(run("div.u64 %d0, %d1, %d2;", [5, 0, 0]), u64::MAX);
    }

    #[test]
    fn order() {
        assert_eq!(run("min.s32 %r0, %r1, %r2;", [0xffff_ffff, 1, 0]), 0xffff_ffff);
        assert_eq!(run("min.u32 %r0, %r1, %r2;", [0xffff_ffff, 1, 0]), 1);
        assert_eq!(run("max.relu.s32 %r0, %r1, %r2;", [0xffff_ffff, 0xffff_fff0, 0]), 0);
        assert_eq!(run("max.s64 %d0, %d1, %d2;", [1 << 63, 1, 0]), 1);
        assert_eq!(run("min.s16x2 %r0, %r1, %r2;", [0xffff_0001, 0x0001_0002, 0]), 0xffff_0001);
        assert_eq!(run("min.relu.s16x2 %r0, %r1, %r2;", [0xffff_0001, 0x0001_0002, 0]), 0x0000_0001);
        assert_eq!(run("max.u16x2 %r0, %r1, %r2;", [0xffff_0001, 0x0001_0002, 0]), 0xffff_0002);
        assert_eq!(run("abs.s16 %h0, %h1;", [0x8000, 0, 0]), 0x8000);
        assert_eq!(run("abs.s64 %d0, %d1;", [-9i64 as u64, 0, 0]), 9);
        assert_eq!(run("neg.s32 %r0, %r1;", [1, 0, 0]), 0xffff_ffff);
        assert_eq!(run("sad.s32 %r0, %r1, %r2, %r3;", [0x8000_0000, 0x7fff_ffff, 2]), 1, "the distance has 32 bits");
        assert_eq!(run("sad.u16 %h0, %h1, %h2, %h3;", [3, 5, 1]), 3);
    }

    #[test]
    fn forms_that_ptx_lacks_are_refused() {
        for (text, reason) in [
            ("add.b8 %b0, %b1, %b2;", "has no type `.b8`"),
            ("add.b32 %r0, %r1, %r2;", "has no type `.b32`"),
            ("add.sat.u32 %r0, %r1, %r2;", "`.sat`"),
            ("add.sat.s64 %d0, %d1, %d2;", "`.sat`"),
            ("sub.u16x2 %r0, %r1, %r2;", "has no type `.u16x2`"),
            ("mul.u32 %r0, %r1, %r2;", "needs `.lo`, `.hi` or `.wide`"),
            ("mul.wide.u64 %d0, %d1, %d2;", "`mul.wide` has no type `.u64`"),
            ("mad.lo.sat.s32 %r0, %r1, %r2, %r3;", "`.sat`"),
            ("abs.u32 %r0, %r1;", "has no type `.u32`"),
            ("max.relu.u32 %r0, %r1, %r2;", "`.relu`"),
            ("div.rn.u32 %r0, %r1, %r2;", "`.rn`"),
            ("add.u32 %r0, %r1;", "an operand is missing"),
            ("add.u32 %r0, %d1, %r2;", "`.b64` register"),
        ] {
            let given = refusal(text).unwrap_or_default();
            assert!(given.contains(reason), "{text}: {given}");
        }
    }
}
