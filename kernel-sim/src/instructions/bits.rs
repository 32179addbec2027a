//! Bit counts, bit fields, and byte dot products (PTX ISA, 9.7.1.13 to 9.7.1.24).

use crate::counters::Class;
use crate::instructions::lanewise::{Decoded, binary, lanewise, mask, number, sources, ternary, type_of, unary};
use crate::instructions::{Form, Unsupported};
use crate::ptx::Type;

const BIT_WORDS: [Type; 2] = [Type::B32, Type::B64];
const WORDS: [Type; 4] = [Type::U32, Type::S32, Type::U64, Type::S64];

/// `popc`
pub(super) fn popc(form: &mut Form<'_>) -> Decoded {
    let ty = type_of(form, &BIT_WORDS)?;
    unary(form, Class::Integer, [Type::U32, ty], |a| u64::from(a.count_ones()))
}

/// `clz`
pub(super) fn clz(form: &mut Form<'_>) -> Decoded {
    let ty = type_of(form, &BIT_WORDS)?;
    unary(form, Class::Integer, [Type::U32, ty], move |a| u64::from(a.leading_zeros() + ty.bits() - 64))
}

/// `bfind{.shiftamt}`: the position of the highest bit that differs from the sign, or all ones if there is none.
pub(super) fn bfind(form: &mut Form<'_>) -> Decoded {
    let ty = type_of(form, &WORDS)?;
    let shift_amount = form.flag("shiftamt");
    unary(form, Class::Integer, [Type::U32, ty], move |a| {
        let value = number(a, ty);
        let magnitude = (if value < 0 { !value } else { value }) as u64;
        match magnitude.checked_ilog2() {
            None => mask(32),
            Some(bit) if shift_amount => u64::from(ty.bits() - 1 - bit),
            Some(bit) => u64::from(bit),
        }
    })
}

/// `fns`: the position of the `|offset|`-th set bit of `mask`, counting from `base` upwards or downwards; all ones if there is none.
pub(super) fn fns(form: &mut Form<'_>) -> Decoded {
    type_of(form, &[Type::B32])?;
    ternary(form, Class::Integer, [Type::B32, Type::B32, Type::B32, Type::S32], |mask, base, offset| {
        let offset = offset as i32;
        let is_set = |bit: i64| (0..32).contains(&bit) && mask >> bit & 1 == 1;
        let mut bit = i64::from(base as u32);
        if offset == 0 {
            return if is_set(bit) { bit as u64 } else { 0xffff_ffff };
        }
        let mut left = offset.unsigned_abs();
        while (0..32).contains(&bit) {
            left -= u32::from(is_set(bit));
            if left == 0 {
                return bit as u64;
            }
            bit += i64::from(offset.signum());
        }
        0xffff_ffff
    })
}

/// `brev`
pub(super) fn brev(form: &mut Form<'_>) -> Decoded {
    let ty = type_of(form, &BIT_WORDS)?;
    unary(form, Class::Integer, [ty; 2], move |a| a.reverse_bits() >> (64 - ty.bits()))
}

/// `bfe`: extracts a bit field, sign-extended if the type is signed.
pub(super) fn bfe(form: &mut Form<'_>) -> Decoded {
    let ty = type_of(form, &WORDS)?;
    // The ISA allows 0 to 255 for both operands. For larger values, hardware takes the low byte in the 32-bit forms and clamps to 255 in
    // the 64-bit forms.
    let byte = move |value: u64| (if ty.bits() == 32 { value & 0xff } else { value.min(0xff) }) as u32;
    ternary(form, Class::Integer, [ty, ty, Type::U32, Type::U32], move |a, start, length| {
        let (start, length) = (byte(start), byte(length));
        if length == 0 {
            return 0;
        }
        // Bits beyond the word are copies of the sign or zeros, as are the bits above the field.
        let shifted = number(a, ty) >> start.min(64);
        let field = if length >= ty.bits() {
            shifted
        } else if ty.is_signed() {
            shifted << (128 - length) >> (128 - length)
        } else {
            shifted & i128::from(mask(length))
        };
        field as u64 & mask(ty.bits())
    })
}

/// `bfi`: `b` with a field replaced by the low bits of `a`.
pub(super) fn bfi(form: &mut Form<'_>) -> Decoded {
    let ty = type_of(form, &BIT_WORDS)?;
    let destination = form.destination(ty)?;
    let sources = sources(form, [ty, ty, Type::U32, Type::U32])?;
    lanewise(Class::Integer, destination, sources, move |[a, b, start, length]| {
        let (start, length) = ((start & 0xff) as u32, (length & 0xff) as u32);
        if start >= ty.bits() {
            return b;
        }
        let field = mask(length) << start & mask(ty.bits());
        a << start & field | b & !field
    })
}

/// Whether a length or position beyond 32 is clamped to 32 (`.clamp`), or only its low bits are used (`.wrap`).
fn clamps(form: &mut Form<'_>) -> Result<bool, Unsupported> {
    let clamps = form.one_of(&[("clamp", true), ("wrap", false)]);
    clamps.ok_or_else(|| form.error(format!("`{}` needs `.clamp` or `.wrap`", form.opcode())))
}

fn limited(value: u64, clamps: bool) -> u32 {
    (if clamps { value.min(32) } else { value & 0x1f }) as u32
}

/// `szext`: extends the low `b` bits.
pub(super) fn szext(form: &mut Form<'_>) -> Decoded {
    let ty = type_of(form, &[Type::U32, Type::S32])?;
    let clamps = clamps(form)?;
    binary(form, Class::Integer, [ty, ty, Type::U32], move |a, length| {
        let length = limited(length, clamps);
        let low = a & mask(length);
        let is_negative = ty == Type::S32 && length > 0 && low >> (length - 1) & 1 == 1;
        if is_negative { low | !mask(length) & mask(32) } else { low }
    })
}

/// `bmsk`: `b` one bits from bit `a` on.
pub(super) fn bmsk(form: &mut Form<'_>) -> Decoded {
    let ty = type_of(form, &[Type::B32])?;
    let clamps = clamps(form)?;
    binary(form, Class::Integer, [ty, ty, ty], move |start, length| mask(limited(length, clamps)) << limited(start, clamps) & mask(32))
}

/// Takes the two types of `dp4a` and `dp2a`; returns whether each factor is signed.
fn signedness(form: &mut Form<'_>) -> Result<[bool; 2], Unsupported> {
    let first = type_of(form, &[Type::U32, Type::S32])?;
    let second = type_of(form, &[Type::U32, Type::S32])?;
    Ok([first.is_signed(), second.is_signed()])
}

/// The part with this index of a register, with parts of `bits` bits.
fn part(value: u64, bits: u32, index: u32, signed: bool) -> i64 {
    let top = (value << (64 - bits * (index + 1))) as i64;
    if signed { top >> (64 - bits) } else { (top as u64 >> (64 - bits)) as i64 }
}

/// `dp4a`: adds the products of four pairs of bytes to `c`.
pub(super) fn dp4a(form: &mut Form<'_>) -> Decoded {
    let [first, second] = signedness(form)?;
    ternary(form, Class::Integer, [Type::B32; 4], move |a, b, c| {
        let product = |index| part(a, 8, index, first) * part(b, 8, index, second);
        (0..4).map(product).fold(c, |sum, product| sum.wrapping_add_signed(product)) & mask(32)
    })
}

/// `dp2a`: adds the products of two 16-bit halves and the two low or high bytes to `c`.
pub(super) fn dp2a(form: &mut Form<'_>) -> Decoded {
    let offset = form.one_of(&[("lo", 0), ("hi", 2)]).ok_or_else(|| form.error("`dp2a` needs `.lo` or `.hi`"))?;
    let [first, second] = signedness(form)?;
    ternary(form, Class::Integer, [Type::B32; 4], move |a, b, c| {
        let product = |index| part(a, 16, index, first) * part(b, 8, index + offset, second);
        (0..2).map(product).fold(c, |sum, product| sum.wrapping_add_signed(product)) & mask(32)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::instructions::harness::{Harness, refusal, with_registers};

    fn set(harness: &mut Harness, values: &[u64]) {
        for (index, &value) in values.iter().enumerate() {
            harness.define(&format!("%d{}", index + 1), Type::B64, |_| value);
            harness.define(&format!("%r{}", index + 1), Type::B32, |_| value & mask(32));
        }
    }

    fn run(text: &str, values: &[u64]) -> u64 {
        let mut harness = with_registers();
        set(&mut harness, values);
        harness.run(text).unwrap();
        harness.value(&text.split_whitespace().nth(1).unwrap()[..3])[0]
    }

    #[test]
    fn counts() {
        assert_eq!(run("popc.b64 %r0, %d1;", &[u64::MAX]), 64);
        assert_eq!(run("clz.b32 %r0, %r1;", &[0]), 32);
        assert_eq!(run("clz.b64 %r0, %d1;", &[1]), 63);
        assert_eq!(run("brev.b32 %r0, %r1;", &[1]), 0x8000_0000);
        assert_eq!(run("bfind.u32 %r0, %r1;", &[0]), 0xffff_ffff);
        assert_eq!(run("bfind.s32 %r0, %r1;", &[0xffff_ffff]), 0xffff_ffff);
        assert_eq!(run("bfind.s32 %r0, %r1;", &[0xffff_fffe]), 0);
        assert_eq!(run("bfind.shiftamt.u64 %r0, %d1;", &[1]), 63);
        assert_eq!(run("bfind.u64 %r0, %d1;", &[1 << 63]), 63);
    }

    #[test]
    fn the_nth_set_bit() {
        for (mask, base, offset, expected) in [
            (0b1011_0100, 2, 0, 2),
            (0b1011_0100, 3, 0, 0xffff_ffff),
            (0b1011_0100, 2, 2, 4),
            (0b1011_0100, 3, 1, 4),
            (0b1011_0100, 7, -3, 4),
            (1, 0, 2, 0xffff_ffff),
        ] {
            let mut harness = with_registers();
            harness.define("%r1", Type::B32, |_| mask);
            harness.run(&format!("fns.b32 %r0, %r1, {base}, {offset};")).unwrap();
            assert_eq!(harness.value("%r0")[0], expected, "{mask:#b} from {base} by {offset}");
        }
    }

    /// The definition of `bfe` in the ISA, bit by bit.
    fn bfe_by_bits(a: u64, start: u64, length: u64, ty: Type) -> u64 {
        let byte = |value: u64| if ty.bits() == 32 { value & 0xff } else { value.min(0xff) };
        let (start, length, top) = (byte(start), byte(length), u64::from(ty.bits()) - 1);
        let bit = |index: u64| a >> index & 1;
        let sign = if !ty.is_signed() || length == 0 { 0 } else { bit((start + length - 1).min(top)) };
        (0..=top).fold(0, |bits, index| bits | (if index < length && start + index <= top { bit(start + index) } else { sign }) << index)
    }

    /// The definition of `bfi` in the ISA, bit by bit.
    fn bfi_by_bits(a: u64, b: u64, start: u64, length: u64, top: u64) -> u64 {
        let (start, length) = (start & 0xff, length & 0xff);
        let mut bits = b;
        for index in (0..length).take_while(|index| start + index <= top) {
            bits = bits & !(1 << (start + index)) | (a >> index & 1) << (start + index);
        }
        bits
    }

    #[test]
    fn bit_fields_are_as_the_isa_defines_them_bit_by_bit() {
        let mut harness = with_registers();
        let (a, b) = (0x9234_5678_9abc_def1, 0xfedc_ba98_0f0f_3333);
        for start in [0, 1, 5, 31, 32, 33, 63, 64, 200, 255, 256] {
            for length in [0, 1, 7, 31, 32, 33, 63, 64, 65, 255, 257] {
                set(&mut harness, &[a, b, start, length]);
                for (ty, letter) in [(Type::U32, 'r'), (Type::S32, 'r'), (Type::U64, 'd'), (Type::S64, 'd')] {
                    harness.run(&format!("bfe{ty} %{letter}0, %{letter}1, %r3, %r4;")).unwrap();
                    let expected = bfe_by_bits(a & mask(ty.bits()), start, length, ty);
                    assert_eq!(harness.value(&format!("%{letter}0"))[0], expected, "bfe{ty} {start} {length}");
                }
                harness.run("bfi.b32 %r0, %r1, %r2, %r3, %r4;").unwrap();
                assert_eq!(harness.value("%r0")[0], bfi_by_bits(a & mask(32), b & mask(32), start, length, 31), "bfi.b32 {start} {length}");
                harness.run("bfi.b64 %d0, %d1, %d2, %r3, %r4;").unwrap();
                assert_eq!(harness.value("%d0")[0], bfi_by_bits(a, b, start, length, 63), "bfi.b64 {start} {length}");
            }
        }
    }

    #[test]
    fn extensions_and_masks() {
        assert_eq!(run("szext.clamp.s32 %r0, %r1, %r2;", &[0x88, 4]), 0xffff_fff8);
        assert_eq!(run("szext.wrap.u32 %r0, %r1, %r2;", &[0x88, 36]), 8);
        assert_eq!(run("szext.clamp.s32 %r0, %r1, %r2;", &[0x88, 36]), 0x88);
        assert_eq!(run("bmsk.clamp.b32 %r0, %r1, %r2;", &[4, 8]), 0xff0);
        assert_eq!(run("bmsk.clamp.b32 %r0, %r1, %r2;", &[28, 33]), 0xf000_0000);
        assert_eq!(run("bmsk.clamp.b32 %r0, %r1, %r2;", &[32, 1]), 0);
        assert_eq!(run("bmsk.wrap.b32 %r0, %r1, %r2;", &[33, 34]), 0b110);
    }

    #[test]
    fn sums_of_products() {
        assert_eq!(run("dp4a.s32.u32 %r0, %r1, %r2, %r3;", &[0xff01_80ff, 0xff02_0301, 10]), (10 - 255 + 2 - 384 - 1i32) as u32 as u64);
        assert_eq!(run("dp4a.u32.u32 %r0, %r1, %r2, %r3;", &[0xffff_ffff, 0xffff_ffff, 1]), 4 * 255 * 255 + 1);
        assert_eq!(run("dp2a.lo.s32.s32 %r0, %r1, %r2, %r3;", &[0xffff_0003, 0x0000_05fe, 0]), (-5 - 6i32) as u32 as u64);
        assert_eq!(run("dp2a.hi.u32.s32 %r0, %r1, %r2, %r3;", &[0xffff_0003, 0xff02_0000, 0]), (6 - 65535i32) as u32 as u64);
    }

    #[test]
    fn forms_that_ptx_lacks_are_refused() {
        for text in [
            "popc.u32 %r0, %r1;",
            "clz.b16 %r0, %h1;",
            "bfe.b32 %r0, %r1, %r2, %r3;",
            "bmsk.b32 %r0, %r1, %r2;",
            "dp2a.u32.u32 %r0, %r1, %r2, %r3;",
            "popc.b64 %d0, %d1;",
        ] {
            assert!(refusal(text).is_some(), "{text}");
        }
    }
}
