//! `vabsdiff2` and `vabsdiff4` (PTX ISA, "Video Instructions"): the SIMD forms that CUDA's intrinsics compile to. Other video instructions
//! are unsupported.

use crate::counters::Class;
use crate::instructions::Form;
use crate::instructions::lanewise::{Decoded, mask, no_type, number, ternary};
use crate::ptx::Type;

/// `vabsdiff2.dtype.atype.btype{.sat, .add} d, a, b, c`: absolute differences of halves.
pub(super) fn vabsdiff2(form: &mut Form<'_>) -> Decoded {
    differences(form, [Type::U16, Type::S16])
}

/// `vabsdiff4.dtype.atype.btype{.sat, .add} d, a, b, c`: absolute differences of bytes.
pub(super) fn vabsdiff4(form: &mut Form<'_>) -> Decoded {
    differences(form, [Type::U8, Type::S8])
}

/// The absolute differences of the parts of `a` and `b`. The result is either a packed value, in which `.sat` clamps each part, or with
/// `.add` the sum of the differences and `c`. Without part masks, `c` is used only for `.add`.
fn differences(form: &mut Form<'_>, [unsigned, signed]: [Type; 2]) -> Decoded {
    let mut part = || match form.ty()? {
        Type::U32 => Ok(unsigned),
        Type::S32 => Ok(signed),
        ty => Err(no_type(form, ty)),
    };
    let (of_result, first, second) = (part()?, part()?, part()?);
    let saturates = form.flag("sat");
    let adds = !saturates && form.flag("add");
    let bits = unsigned.bits();
    let most = i128::from(if of_result.is_signed() { mask(bits - 1) } else { mask(bits) });
    ternary(form, Class::Integer, [Type::B32; 4], move |a, b, c| {
        let distance = |shift: u32| (number(a >> shift, first) - number(b >> shift, second)).abs();
        let shifts = (0..32).step_by(bits as usize);
        if adds {
            return shifts.fold(c, |sum, shift| sum.wrapping_add(distance(shift) as u64)) & mask(32);
        }
        let kept = |distance: i128| if saturates { distance.min(most) } else { distance };
        shifts.fold(0, |all, shift| all | (kept(distance(shift)) as u64 & mask(bits)) << shift)
    })
}

#[cfg(test)]
mod tests {
    use crate::instructions::harness::{refusal, with_registers};
    use crate::ptx::Type;

    #[test]
    fn parts_are_as_far_apart_as_numbers() {
        let mut harness = with_registers();
        harness.define("%r1", Type::B32, |_| 0x00ff_8010);
        harness.define("%r2", Type::B32, |_| 0xff00_7f20);
        harness.define("%r3", Type::B32, |_| 5);
        for (text, expected) in [
            ("vabsdiff4.u32.u32.u32 %r0, %r1, %r2, %r3;", 0xffff_0110),
            ("vabsdiff4.u32.s32.s32 %r0, %r1, %r2, %r3;", 0x0101_ff10),
            ("vabsdiff4.s32.s32.s32.sat %r0, %r1, %r2, %r3;", 0x0101_7f10),
            ("vabsdiff4.u32.u32.u32.add %r0, %r1, %r2, %r3;", 255 + 255 + 1 + 16 + 5),
            ("vabsdiff2.u32.u32.u32 %r0, %r1, %r2, %r3;", 0xfe01_00f0),
            ("vabsdiff2.u32.u32.u32.add %r0, %r1, %r2, %r3;", 0xfe01 + 0xf0 + 5),
        ] {
            harness.run(text).unwrap();
            assert_eq!(harness.value("%r0")[7], expected, "{text}");
        }
        for text in ["vabsdiff4.u32.u32.u64 %r0, %r1, %r2, %r3;", "vabsdiff4.u32.u32.u32.sat.add %r0, %r1, %r2, %r3;"] {
            assert!(refusal(text).is_some(), "{text}");
        }
    }
}
