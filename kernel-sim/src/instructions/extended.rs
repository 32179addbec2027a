//! Arithmetic with the carry flag (PTX ISA, 9.7.2, "Extended-Precision Integer Arithmetic Instructions").
//!
//! The flag belongs to the thread, and only these instructions use it. A subtraction adds `a`, the inverted `b` and the flag, so after a
//! subtraction a set flag means "no borrow". Programs can observe this in mixed sequences of additions and subtractions.

use crate::instructions::integer::{Part, product};
use crate::instructions::lanewise::{Carry, Decoded, carrying, mask, type_of};
use crate::instructions::{Form, Unsupported};
use crate::ptx::Type;

const WORDS: [Type; 4] = [Type::U32, Type::S32, Type::U64, Type::S64];

/// `add.cc`
pub(super) fn add(form: &mut Form<'_>, reads: bool, writes: bool) -> Decoded {
    let ty = type_of(form, &WORDS)?;
    carrying(form, ty, Carry { reads, writes }, move |[a, b], carry| sum(a, b, carry, ty))
}

/// `addc{.cc}`
pub(super) fn addc(form: &mut Form<'_>) -> Decoded {
    let writes = form.flag("cc");
    add(form, true, writes)
}

/// `sub.cc`
pub(super) fn sub(form: &mut Form<'_>, reads: bool, writes: bool) -> Decoded {
    let ty = type_of(form, &WORDS)?;
    carrying(form, ty, Carry { reads, writes }, move |[a, b], carry| sum(a, b ^ mask(ty.bits()), carry || !reads, ty))
}

/// `subc{.cc}`
pub(super) fn subc(form: &mut Form<'_>) -> Decoded {
    let writes = form.flag("cc");
    sub(form, true, writes)
}

/// `mad{.hi,.lo}.cc`: the carry out is that of the addition.
pub(super) fn mad(form: &mut Form<'_>, reads: bool, writes: bool) -> Decoded {
    let ty = type_of(form, &WORDS)?;
    let part = part(form)?;
    carrying(form, ty, Carry { reads, writes }, move |[a, b, c], carry| sum(product(a, b, ty, part), c, carry, ty))
}

/// `madc{.hi,.lo}{.cc}`
pub(super) fn madc(form: &mut Form<'_>) -> Decoded {
    let writes = form.flag("cc");
    mad(form, true, writes)
}

fn part(form: &mut Form<'_>) -> Result<Part, Unsupported> {
    let part = form.one_of(&[("lo", Part::Low), ("hi", Part::High)]);
    part.ok_or_else(|| form.error(format!("`{}` with a carry needs `.lo` or `.hi`", form.opcode())))
}

fn sum(a: u64, b: u64, carry: bool, ty: Type) -> (u64, bool) {
    let sum = u128::from(a) + u128::from(b) + u128::from(carry);
    (sum as u64 & mask(ty.bits()), sum >> ty.bits() != 0)
}

#[cfg(test)]
mod tests {
    use crate::instructions::harness::{refusal, with_registers};
    use crate::lanes::Lanes;
    use crate::ptx::Type;

    const A: u128 = 0x0123_4567_89ab_cdef_fedc_ba98_ffff_ffff;
    const B: u128 = 0x0fed_cba9_8765_4321_0123_4567_0000_0001;

    fn word(value: u128, index: usize) -> u64 {
        (value >> (32 * index)) as u64 & 0xffff_ffff
    }

    fn chain(operation: &str) -> u128 {
        let mut harness = with_registers();
        let mut result = 0;
        for index in 0..4 {
            harness.define("%r1", Type::B32, |_| word(A, index));
            harness.define("%r2", Type::B32, |_| word(B, index));
            let carry = if index == 0 { "" } else { "c" };
            harness.run(&format!("{operation}{carry}.cc.u32 %r0, %r1, %r2;")).unwrap();
            result |= u128::from(harness.value("%r0")[9]) << (32 * index);
        }
        result
    }

    #[test]
    fn chains_of_words_are_wide_sums() {
        assert_eq!(chain("add"), A + B);
        assert_eq!(chain("sub"), A.wrapping_sub(B));
    }

    #[test]
    fn chains_of_products_are_wide_products() {
        let mut harness = with_registers();
        let (a, b) = (0xfedc_ba98_7654_3210u64, 0xffff_ffff_8765_4321u64);
        for (name, value) in [("%r1", a), ("%r2", a >> 32), ("%r3", b), ("%r4", b >> 32)] {
            harness.define(name, Type::B32, |_| value & 0xffff_ffff);
        }
        // Schoolbook multiplication, as compilers emit for products of `__int128`.
        for text in [
            "mul.lo.u32 %r5, %r1, %r3;",
            "mul.hi.u32 %r6, %r1, %r3;",
            "mad.lo.cc.u32 %r6, %r2, %r3, %r6;",
            "madc.hi.u32 %r7, %r2, %r3, 0;",
            "mad.lo.cc.u32 %r6, %r1, %r4, %r6;",
            "madc.hi.cc.u32 %r7, %r1, %r4, %r7;",
            "addc.u32 %r8, 0, 0;",
            "mad.lo.cc.u32 %r7, %r2, %r4, %r7;",
            "madc.hi.u32 %r8, %r2, %r4, %r8;",
        ] {
            harness.run(text).unwrap();
        }
        let words = ["%r5", "%r6", "%r7", "%r8"].map(|name| u128::from(harness.value(name)[0]));
        let product = words.iter().rev().fold(0, |product, word| product << 32 | word);
        assert_eq!(product, u128::from(a) * u128::from(b));
    }

    #[test]
    fn the_flag_belongs_to_each_lane_and_stays_where_nothing_is_executed() {
        let mut harness = with_registers();
        harness.define("%d1", Type::B64, |lane| if lane % 2 == 0 { u64::MAX } else { 0 });
        harness.run("add.cc.u64 %d0, %d1, 1;").unwrap();
        harness.lanes = Lanes(0xf);
        harness.run("sub.cc.u64 %d0, 0, 0;").unwrap();
        harness.lanes = Lanes::ALL;
        harness.run("addc.u64 %d0, 0, 0;").unwrap();
        let carries: Vec<u64> = harness.value("%d0")[..8].to_vec();
        assert_eq!(carries, [1, 1, 1, 1, 1, 0, 1, 0], "a difference without a borrow sets it");
    }

    #[test]
    fn a_difference_after_a_sum_takes_its_carry_for_no_borrow() {
        let mut harness = with_registers();
        harness.run("add.cc.u32 %r0, 1, 1;").unwrap();
        harness.run("subc.cc.u32 %r0, 5, 3;").unwrap();
        assert_eq!(harness.value("%r0")[0], 1);
        harness.run("addc.u32 %r0, 0, 0;").unwrap();
        assert_eq!(harness.value("%r0")[0], 1);
    }

    #[test]
    fn forms_that_ptx_lacks_are_refused() {
        for text in [
            "add.cc.u16 %h0, %h1, %h2;",
            "addc.sat.s32 %r0, %r1, %r2;",
            "mad.cc.u32 %r0, %r1, %r2, %r3;",
            "madc.wide.u32 %d0, %r1, %r2, %d3;",
        ] {
            assert!(refusal(text).is_some(), "{text}");
        }
    }
}
