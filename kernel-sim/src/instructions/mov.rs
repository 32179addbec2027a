//! `mov` of registers, constants, addresses of variables and special registers, and packing and unpacking (PTX ISA, 9.7.9.2 and 9.7.9.3).

use crate::counters::Class;
use crate::fault::Trap;
use crate::instructions::lanewise::{Decoded, lanewise, mask, type_of};
use crate::instructions::{Form, Instruction, Progress, Register, Unsupported, Value};
use crate::lanes::{Row, WARP, WideRow};
use crate::machine::{Cx, Unknowns};
use crate::ptx::{Operand, Type};

const TYPES: [Type; 13] = [
    Type::Pred,
    Type::B16,
    Type::B32,
    Type::B64,
    Type::B128,
    Type::U16,
    Type::U32,
    Type::U64,
    Type::S16,
    Type::S32,
    Type::S64,
    Type::F32,
    Type::F64,
];

/// `mov`
pub(super) fn mov(form: &mut Form<'_>) -> Decoded {
    let ty = type_of(form, &TYPES)?;
    if let Some(Operand::Vector(parts)) = form.peek() {
        return unpack(form, ty, parts.len());
    }
    let destination = form.destination(ty)?;
    if let Some(Operand::Vector(parts)) = form.peek() {
        return pack(form, ty, destination, parts.len());
    }
    let source = form.source(ty)?;
    if ty == Type::B128 {
        let sources = whole(source, ty);
        return Ok(Box::new(Pack { destination, is_wide: true, sources, bits: 64 }));
    }
    // The address of a variable or a special register may be wider than the type.
    let mask = mask(ty.bits());
    lanewise(Class::Integer, destination, [source], move |[a]| a & mask)
}

/// The element type of a vector of `count` elements that is as wide as `ty`.
fn part(form: &Form<'_>, ty: Type, count: usize) -> Result<Type, Unsupported> {
    let has_parts = matches!(ty, Type::B16 | Type::B32 | Type::B64 | Type::B128);
    match (has_parts, ty.bits() as usize / count.max(1)) {
        (true, 8) if count < 8 => Ok(Type::B8),
        (true, 16) if count < 8 => Ok(Type::B16),
        (true, 32) => Ok(Type::B32),
        (true, 64) => Ok(Type::B64),
        _ => Err(form.error(format!("`mov{ty}` has no vector of {count}"))),
    }
}

fn pack(form: &mut Form<'_>, ty: Type, destination: Option<Register>, count: usize) -> Decoded {
    let part = part(form, ty, count)?;
    let parts = form.parts(count)?;
    let sources = parts.into_iter().map(|operand| form.as_source(operand, part, false)).collect::<Result<_, _>>()?;
    Ok(Box::new(Pack { destination, is_wide: ty == Type::B128, sources, bits: part.bits() }))
}

fn unpack(form: &mut Form<'_>, ty: Type, count: usize) -> Decoded {
    let part = part(form, ty, count)?;
    let parts = form.parts(count)?;
    let destinations = parts.into_iter().map(|operand| form.as_destination(operand, part, false)).collect::<Result<_, _>>()?;
    let source = form.source(ty)?;
    Ok(Box::new(Unpack { destinations, sources: whole(source, ty), bits: part.bits() }))
}

/// The 64-bit words of a value: two for `.b128`.
fn whole(value: Value, ty: Type) -> Vec<Value> {
    match value {
        Value::Register(register) if ty == Type::B128 => vec![value, Value::Register(register.high())],
        _ => vec![value],
    }
}

/// Packs elements into one value, lowest first.
struct Pack {
    destination: Option<Register>,
    is_wide: bool,
    sources: Vec<Value>,
    /// The width of an element in bits.
    bits: u32,
}

impl Instruction for Pack {
    fn execute(&self, cx: &mut Cx<'_>) -> Result<Progress, Trap> {
        let (whole, unknown) = gather(cx, &self.sources, self.bits)?;
        cx.write(self.destination, &whole.map(|bits| bits as u64));
        cx.write_unknown(self.destination, &unknown);
        if self.is_wide {
            let high = self.destination.map(Register::high);
            cx.write(high, &whole.map(|bits| (bits >> 64) as u64));
            cx.write_unknown(high, &unknown);
        }
        Ok(Progress::Done)
    }

    fn class(&self) -> Class {
        Class::Integer
    }
}

/// Unpacks a value into elements, lowest first.
struct Unpack {
    destinations: Vec<Option<Register>>,
    sources: Vec<Value>,
    /// The width of an element in bits.
    bits: u32,
}

impl Instruction for Unpack {
    fn execute(&self, cx: &mut Cx<'_>) -> Result<Progress, Trap> {
        let (whole, unknown) = gather(cx, &self.sources, 64)?;
        for (index, destination) in self.destinations.iter().enumerate() {
            let row: Row = whole.map(|bits| (bits >> (index as u32 * self.bits)) as u64 & mask(self.bits));
            cx.write(*destination, &row);
            cx.write_unknown(*destination, &unknown);
        }
        Ok(Progress::Done)
    }

    fn class(&self) -> Class {
        Class::Integer
    }
}

fn gather(cx: &Cx<'_>, sources: &[Value], bits: u32) -> Result<(WideRow, Unknowns), Trap> {
    let mut whole: WideRow = [0; WARP];
    let mut unknown = Unknowns::new();
    for (index, source) in sources.iter().enumerate() {
        let row = cx.read_through(cx.lanes, *source, &mut unknown)?;
        for (bits_of_lane, part) in whole.iter_mut().zip(row) {
            *bits_of_lane |= u128::from(part & mask(bits)) << (index as u32 * bits);
        }
    }
    Ok((whole, unknown))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::FaultKind;
    use crate::instructions::harness::{Failure, Harness, refusal, with_registers};
    use crate::ptx::Space;

    #[test]
    fn operands_of_mov() {
        let mut harness = with_registers();
        harness.variable("tile", Space::Shared, 0x40);
        harness.variable("table", Space::Global, 0x10_0000_0100);
        for (text, name, expected) in [
            ("mov.u32 %r0, -2;", "%r0", 0xffff_fffe),
            ("mov.f32 %r0, 0f3F800000;", "%r0", 0x3f80_0000),
            ("mov.f64 %d0, 1.5;", "%d0", 1.5f64.to_bits()),
            ("mov.u32 %r0, %tid.x;", "%r0", 5),
            ("mov.u32 %r0, tile;", "%r0", 0x40),
            ("mov.u64 %d0, tile+8;", "%d0", 0x48),
            ("mov.u64 %d0, table;", "%d0", 0x10_0000_0100),
            ("mov.b16 %h0, 0x3c00;", "%h0", 0x3c00),
            ("mov.u32 %r0, %lanemask_gt;", "%r0", 0xffff_ffc0),
        ] {
            harness.run(text).unwrap();
            assert_eq!(harness.value(name)[5], expected, "{text}");
        }
        harness.define("%p1", Type::Pred, |lane| (lane % 2) as u64);
        harness.run("mov.pred %p0, %p1;").unwrap();
        assert_eq!(harness.value("%p0")[..3], [0, 1, 0]);
    }

    #[test]
    fn packing_and_unpacking() {
        let mut harness = with_registers();
        harness.define("%r1", Type::B32, |lane| 0x1111_0000 + lane as u64);
        harness.define("%r2", Type::B32, |_| 0x2222_3333);
        harness.run("mov.b64 %d0, {%r1, %r2};").unwrap();
        assert_eq!(harness.value("%d0")[3], 0x2222_3333_1111_0003);
        harness.run("mov.b64 {%h1, _, %h3, %h4}, %d0;").unwrap();
        assert_eq!(["%h1", "%h3", "%h4"].map(|name| harness.value(name)[3]), [3, 0x3333, 0x2222]);
        harness.run("mov.b32 %r3, {%h4, %h1};").unwrap();
        assert_eq!(harness.value("%r3")[3], 0x0003_2222);
        harness.run("mov.b128 %q1, {%d0, %d0};").unwrap();
        harness.run("mov.b128 %q2, %q1;").unwrap();
        harness.run("mov.b128 {%d5, %d6}, %q2;").unwrap();
        assert_eq!((harness.value("%d5")[9], harness.value("%d6")[9]), (harness.value("%d0")[9], harness.value("%d0")[9]));
        harness.run("mov.b128 {%r4, %r5, %r6, %r7}, %q2;").unwrap();
        assert_eq!(harness.value("%r7")[9], 0x2222_3333);
        harness.run("mov.b32 {%b0, %b1, %b2, %b3}, %r2;").unwrap();
        assert_eq!(harness.value("%b3")[0], 0x22);
    }

    #[test]
    fn uninitialised_values_can_be_moved_but_not_used() {
        let mut harness = Harness::new();
        for (name, ty) in [("%r1", Type::B32), ("%r2", Type::B32), ("%r3", Type::B32), ("%d1", Type::B64), ("%p1", Type::Pred)] {
            harness.declare(name, ty);
        }
        harness.define("%zero", Type::B32, |_| 0);
        for text in ["mov.u32 %r1, %r2;", "mov.b64 %d1, {%r1, %zero};", "mov.b64 {%r3, _}, %d1;", "add.u32 %r3, %r3, 1;"] {
            harness.run(text).unwrap();
        }
        for text in [
            "st.shared.u32 [0], %r3;",
            "ld.shared.u32 %r1, [%r3];",
            "vote.sync.ballot.b32 %r1, %p1, -1;",
            "redux.sync.add.u32 %r1, %r3, -1;",
        ] {
            assert!(matches!(harness.run(text), Err(Failure::Trap(0, FaultKind::UninitialisedRegister { .. }))), "{text}");
        }
        let Err(Failure::Trap(0, kind)) = harness.run("st.shared.u32 [0], %r3;") else { panic!("it was stored") };
        assert_eq!(kind, FaultKind::UninitialisedRegister { register: "%r2".to_owned() });
        // The other operand determines the result.
        harness.run("and.b32 %r3, %r3, %zero;").unwrap();
        harness.run("st.shared.u32 [0], %r3;").unwrap();
        harness.run("setp.eq.and.u32 %p1, %r2, 5, 0;").unwrap();
        harness.run("selp.u32 %r3, %r2, %zero, %p1;").unwrap();
        harness.run("st.shared.u32 [0], %r3;").unwrap();
    }

    #[test]
    fn forms_that_ptx_lacks_are_refused() {
        for text in [
            "mov.f16 %h0, %h1;",
            "mov.b8 %b0, %b1;",
            "mov.u32 %r0, %d1;",
            "mov.b64 %d0, {%r1, %r2, %r3};",
            "mov.f64 %d0, {%r1, %r2};",
            "mov.b64 {%r1, %r2}, %r3;",
            "mov.u32 %r0, nothing;",
            "mov.rn.f32 %r0, %r1;",
        ] {
            assert!(refusal(text).is_some(), "{text}");
        }
    }
}
