//! Logic operations, shifts and byte permutation (PTX ISA, 9.7.8, "Logic and Shift Instructions", and `prmt` of 9.7.9).

use crate::counters::Class;
use crate::instructions::lanewise::{Decoded, absorbed, binary, mask, number, paired, sources, ternary, type_of, unary};
use crate::instructions::{Form, Unsupported};
use crate::ptx::Type;

const BITS: [Type; 4] = [Type::Pred, Type::B16, Type::B32, Type::B64];

/// `and`
pub(super) fn and(form: &mut Form<'_>) -> Decoded {
    let ty = type_of(form, &BITS)?;
    let destination = form.destination(ty)?;
    absorbed(Class::Integer, destination, sources(form, [ty; 2])?, [Some(0); 2], |[a, b]| a & b)
}

/// `or`
pub(super) fn or(form: &mut Form<'_>) -> Decoded {
    let ty = type_of(form, &BITS)?;
    let destination = form.destination(ty)?;
    absorbed(Class::Integer, destination, sources(form, [ty; 2])?, [Some(mask(ty.bits())); 2], |[a, b]| a | b)
}

/// `xor`
pub(super) fn xor(form: &mut Form<'_>) -> Decoded {
    let ty = type_of(form, &BITS)?;
    binary(form, Class::Integer, [ty; 3], |a, b| a ^ b)
}

/// `not`
pub(super) fn not(form: &mut Form<'_>) -> Decoded {
    let ty = type_of(form, &BITS)?;
    let mask = mask(ty.bits());
    unary(form, Class::Integer, [ty; 2], move |a| a ^ mask)
}

/// `cnot`: 1 if the operand is zero, otherwise 0.
pub(super) fn cnot(form: &mut Form<'_>) -> Decoded {
    let ty = type_of(form, &BITS[1..])?;
    unary(form, Class::Integer, [ty; 2], |a| u64::from(a == 0))
}

/// `lop3`, `lop3.BoolOp`: any bitwise function of three operands, given as a truth table.
pub(super) fn lop3(form: &mut Form<'_>) -> Decoded {
    let combine = form.one_of(&[("or", true), ("and", false)]);
    let ty = type_of(form, &[Type::B32])?;
    let Some(is_or) = combine else {
        let destination = form.destination(ty)?;
        let sources = sources(form, [ty; 3])?;
        let table = table(form)?;
        return super::lanewise::lanewise(Class::Integer, destination, sources, move |[a, b, c]| by_table(a, b, c, table));
    };
    let destinations = form.destination_pair(ty, Type::Pred)?;
    let [a, b, c] = sources(form, [ty; 3])?;
    let table = table(form)?;
    let other = form.source(Type::Pred)?;
    paired(Class::Integer, destinations, [a, b, c, other], move |[a, b, c, other]| {
        let result = by_table(a, b, c, table);
        let is_set = u64::from(result != 0);
        [result, if is_or { is_set | other } else { is_set & other }]
    })
}

fn table(form: &mut Form<'_>) -> Result<u64, Unsupported> {
    let table = form.immediate()?;
    if table < 256 { Ok(table) } else { Err(form.error(format!("the table of `lop3` has 8 bits, and {table:#x} has more"))) }
}

/// Bit `4a + 2b + c` of the truth table is the result for the bits `a`, `b`, `c`.
fn by_table(a: u64, b: u64, c: u64, table: u64) -> u64 {
    let row = |number: u64| {
        let pick = |bits: u64, wanted: bool| if wanted { bits } else { !bits };
        if table >> number & 1 == 1 { pick(a, number & 4 != 0) & pick(b, number & 2 != 0) & pick(c, number & 1 != 0) } else { 0 }
    };
    (0..8).fold(0, |bits, number| bits | row(number)) & mask(32)
}

/// `shl`: a shift by the width or more gives 0.
pub(super) fn shl(form: &mut Form<'_>) -> Decoded {
    let ty = type_of(form, &BITS[1..])?;
    let mask = mask(ty.bits());
    binary(form, Class::Integer, [ty, ty, Type::U32], move |a, amount| a.checked_shl(amount as u32).unwrap_or(0) & mask)
}

/// `shr`: arithmetic for signed types, otherwise logical.
pub(super) fn shr(form: &mut Form<'_>) -> Decoded {
    const TYPES: [Type; 9] = [Type::B16, Type::B32, Type::B64, Type::U16, Type::U32, Type::U64, Type::S16, Type::S32, Type::S64];
    let ty = type_of(form, &TYPES)?;
    if ty.is_signed() {
        return binary(form, Class::Integer, [ty, ty, Type::U32], move |a, amount| {
            (number(a, ty) >> amount.min(64)) as u64 & mask(ty.bits())
        });
    }
    binary(form, Class::Integer, [ty, ty, Type::U32], |a, amount| a.checked_shr(amount as u32).unwrap_or(0))
}

/// `shf.{l,r}.{clamp,wrap}`: a funnel shift of the 64 bits of two registers; the result is one half.
pub(super) fn shf(form: &mut Form<'_>) -> Decoded {
    let left = form.one_of(&[("l", true), ("r", false)]).ok_or_else(|| form.error("`shf` needs `.l` or `.r`"))?;
    let clamps = form.one_of(&[("clamp", true), ("wrap", false)]).ok_or_else(|| form.error("`shf` needs `.clamp` or `.wrap`"))?;
    let ty = type_of(form, &[Type::B32])?;
    ternary(form, Class::Integer, [ty, ty, ty, Type::U32], move |low, high, amount| {
        let amount = if clamps { amount.min(32) } else { amount & 31 };
        let both = high << 32 | low;
        if left { both << amount >> 32 } else { both >> amount & mask(32) }
    })
}

/// The four source bytes of a `prmt` mode for each value of the selector, lowest result byte last (PTX ISA, 9.7.9.7).
type Choice = [u64; 4];

const MODES: [(&str, Choice); 6] = [
    ("f4e", [0x3210, 0x4321, 0x5432, 0x6543]),
    ("b4e", [0x5670, 0x6701, 0x7012, 0x0123]),
    ("rc8", [0x0000, 0x1111, 0x2222, 0x3333]),
    ("ecl", [0x3210, 0x3211, 0x3222, 0x3333]),
    ("ecr", [0x0000, 0x1110, 0x2210, 0x3210]),
    ("rc16", [0x1010, 0x3232, 0x1010, 0x3232]),
];

/// `prmt{.mode}`
pub(super) fn prmt(form: &mut Form<'_>) -> Decoded {
    let ty = type_of(form, &[Type::B32])?;
    match form.one_of(&MODES) {
        None => ternary(form, Class::Integer, [ty; 4], permute),
        Some(choices) => ternary(form, Class::Integer, [ty; 4], move |a, b, selector| permute(a, b, choices[(selector & 3) as usize])),
    }
}

/// Each nibble of the selector selects a byte of `b:a`. If the nibble's top bit is set, the byte's sign is replicated instead.
fn permute(a: u64, b: u64, selector: u64) -> u64 {
    let both = b << 32 | a;
    (0..4).fold(0, |bits, index| {
        let nibble = selector >> (4 * index) & 0xf;
        let byte = both >> (8 * (nibble & 7)) & 0xff;
        let byte = if nibble & 8 == 0 { byte } else { (byte >> 7) * 0xff };
        bits | byte << (8 * index)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::instructions::harness::{refusal, with_registers};

    fn run(text: &str, values: &[u64]) -> u64 {
        let mut harness = with_registers();
        for (index, &value) in values.iter().enumerate() {
            for (letter, ty) in [('d', Type::B64), ('r', Type::B32), ('h', Type::B16), ('p', Type::Pred)] {
                harness.define(&format!("%{letter}{}", index + 1), ty, |_| value & mask(ty.bits()));
            }
        }
        harness.run(text).unwrap();
        harness.value(&text.split_whitespace().nth(1).unwrap()[..3])[0]
    }

    #[test]
    fn logic() {
        assert_eq!(run("and.pred %p0, %p1, !%p2;", &[1, 0]), 1);
        assert_eq!(run("xor.b64 %d0, %d1, %d2;", &[u64::MAX, 1]), u64::MAX - 1);
        assert_eq!(run("or.b16 %h0, %h1, 0x8000;", &[1]), 0x8001);
        assert_eq!(run("not.b16 %h0, %h1;", &[1]), 0xfffe);
        assert_eq!(run("not.pred %p0, %p1;", &[1]), 0);
        assert_eq!(run("cnot.b32 %r0, %r1;", &[0]), 1);
    }

    #[test]
    fn tables_of_three_bits() {
        let (a, b, c) = (0xf0f0_1234u64, 0xcccc_5678u64, 0xaaaa_9abcu64);
        for (table, expected) in [
            (0xf0 & 0xcc & 0xaa, a & b & c),
            (0xf0 | 0xcc | 0xaa, a | b | c),
            (0xf0 ^ 0xcc ^ 0xaa, a ^ b ^ c),
            (0xf0 & 0xcc | !0xf0 & 0xaa & 0xff, a & b | !a & c),
        ] {
            assert_eq!(run(&format!("lop3.b32 %r0, %r1, %r2, %r3, {table};"), &[a, b, c]), expected, "{table:#x}");
        }
    }

    #[test]
    fn a_table_with_a_predicate() {
        let mut harness = with_registers();
        harness.define("%r1", Type::B32, |lane| (lane % 2) as u64);
        harness.define("%p1", Type::Pred, |lane| (lane / 2 % 2) as u64);
        harness.run("lop3.or.b32 %r0|%p0, %r1, %r1, %r1, 0x80, %p1;").unwrap();
        assert_eq!(harness.value("%p0")[..4], [0, 1, 1, 1]);
        assert_eq!(harness.value("%r0")[..4], [0, 1, 0, 1]);
        harness.run("lop3.and.b32 _|%p0, %r1, %r1, %r1, 0x80, !%p1;").unwrap();
        assert_eq!(harness.value("%p0")[..4], [0, 1, 0, 0]);
    }

    #[test]
    fn shifts_clamp() {
        assert_eq!(run("shl.b32 %r0, %r1, %r2;", &[1, 31]), 1 << 31);
        assert_eq!(run("shl.b32 %r0, %r1, %r2;", &[1, 32]), 0);
        assert_eq!(run("shl.b16 %h0, %h1, %r2;", &[3, 15]), 0x8000);
        assert_eq!(run("shl.b64 %d0, %d1, %r2;", &[1, 0xffff_ffff]), 0);
        assert_eq!(run("shr.u32 %r0, %r1, %r2;", &[0x8000_0000, 33]), 0);
        assert_eq!(run("shr.b64 %d0, %d1, %r2;", &[1 << 63, 63]), 1);
        assert_eq!(run("shr.s32 %r0, %r1, %r2;", &[0x8000_0000, 31]), 0xffff_ffff);
        assert_eq!(run("shr.s16 %h0, %h1, %r2;", &[0x8000, 100]), 0xffff);
        assert_eq!(run("shr.s64 %d0, %d1, %r2;", &[1 << 63, 0xffff_ffff]), u64::MAX);
    }

    #[test]
    fn funnel_shifts() {
        let (low, high) = (0x89ab_cdef, 0x0123_4567);
        assert_eq!(run("shf.l.wrap.b32 %r0, %r1, %r2, %r3;", &[low, high, 40]), 0x2345_6789);
        assert_eq!(run("shf.l.clamp.b32 %r0, %r1, %r2, %r3;", &[low, high, 40]), low);
        assert_eq!(run("shf.r.wrap.b32 %r0, %r1, %r2, %r3;", &[low, high, 8]), 0x6789_abcd);
        assert_eq!(run("shf.r.clamp.b32 %r0, %r1, %r2, %r3;", &[low, high, 99]), high);
    }

    #[test]
    fn permutations() {
        let (a, b) = (0x8322_1100, 0x7766_5544);
        assert_eq!(run("prmt.b32 %r0, %r1, %r2, 0x7531;", &[a, b]), 0x7755_8311);
        assert_eq!(run("prmt.b32 %r0, %r1, %r2, 0xb8f4;", &[a, b]), 0xff00_0044);
        assert_eq!(run("prmt.b32.f4e %r0, %r1, %r2, %r3;", &[a, b, 1]), 0x4483_2211);
        assert_eq!(run("prmt.b32.b4e %r0, %r1, %r2, %r3;", &[a, b, 6]), 0x7700_1122);
        assert_eq!(run("prmt.b32.rc8 %r0, %r1, %r2, %r3;", &[a, b, 2]), 0x2222_2222);
        assert_eq!(run("prmt.b32.ecl %r0, %r1, %r2, %r3;", &[a, b, 1]), 0x8322_1111);
        assert_eq!(run("prmt.b32.ecr %r0, %r1, %r2, %r3;", &[a, b, 1]), 0x1111_1100);
        assert_eq!(run("prmt.b32.rc16 %r0, %r1, %r2, %r3;", &[a, b, 1]), 0x8322_8322);
    }

    #[test]
    fn forms_that_ptx_lacks_are_refused() {
        for text in [
            "and.u32 %r0, %r1, %r2;",
            "shl.u32 %r0, %r1, %r2;",
            "shl.b32 %r0, %r1, %h2;",
            "cnot.pred %p0, %p1;",
            "lop3.b32 %r0, %r1, %r2, %r3, 256;",
            "lop3.b32 %r0, %r1, %r2, %r3, %r4;",
            "shf.l.b32 %r0, %r1, %r2, %r3;",
            "prmt.b32.f5e %r0, %r1, %r2, %r3;",
        ] {
            assert!(refusal(text).is_some(), "{text}");
        }
    }
}
