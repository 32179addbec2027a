//! `setp set selp slct` (PTX ISA, 9.7.6, "Comparison and Selection Instructions", and 9.7.7 for 16-bit floats).

use std::cmp::Ordering;

use crate::counters::Class;
use crate::fault::Trap;
use crate::instructions::lanewise::{Decoded, absorbed, lanewise, mask, no_type, number, paired_absorbed, sources, type_of};
use crate::instructions::{Form, Instruction, Progress, Register, Unsupported, Value};
use crate::machine::{Cx, Unknowns};
use crate::numerics::float::{Bf16, F16, F32, F64, Float};
use crate::ptx::Type;

/// A comparison, as the set of relations for which it is true.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Comparison {
    less: bool,
    equal: bool,
    greater: bool,
    /// At least one operand is a NaN.
    unordered: bool,
}

impl Comparison {
    fn accepts(self, relation: Option<Ordering>) -> bool {
        match relation {
            Some(Ordering::Less) => self.less,
            Some(Ordering::Equal) => self.equal,
            Some(Ordering::Greater) => self.greater,
            None => self.unordered,
        }
    }
}

/// A comparison from the symbols of its relations.
const fn accepting(relations: &str) -> Comparison {
    let mut comparison = Comparison { less: false, equal: false, greater: false, unordered: false };
    let bytes = relations.as_bytes();
    let mut index = 0;
    while index < bytes.len() {
        match bytes[index] {
            b'<' => comparison.less = true,
            b'=' => comparison.equal = true,
            b'>' => comparison.greater = true,
            _ => comparison.unordered = true,
        }
        index += 1;
    }
    comparison
}

/// The types that support a comparison.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum For {
    /// All types.
    Any,
    /// All ordered types: not `.b32`.
    Ordered,
    /// Unsigned integers.
    Unsigned,
    /// Floats.
    Floats,
}

/// The comparisons of PTX ISA, 9.3.1: name, accepted relations (`?` means unordered), and types.
const COMPARISONS: [(&str, (Comparison, For)); 18] = [
    ("eq", (accepting("="), For::Any)),
    ("ne", (accepting("<>"), For::Any)),
    ("lt", (accepting("<"), For::Ordered)),
    ("le", (accepting("<="), For::Ordered)),
    ("gt", (accepting(">"), For::Ordered)),
    ("ge", (accepting(">="), For::Ordered)),
    ("lo", (accepting("<"), For::Unsigned)),
    ("ls", (accepting("<="), For::Unsigned)),
    ("hi", (accepting(">"), For::Unsigned)),
    ("hs", (accepting(">="), For::Unsigned)),
    ("equ", (accepting("=?"), For::Floats)),
    ("neu", (accepting("<>?"), For::Floats)),
    ("ltu", (accepting("<?"), For::Floats)),
    ("leu", (accepting("<=?"), For::Floats)),
    ("gtu", (accepting(">?"), For::Floats)),
    ("geu", (accepting(">=?"), For::Floats)),
    ("num", (accepting("<=>"), For::Floats)),
    ("nan", (accepting("?"), For::Floats)),
];

/// The boolean operator that combines the result of a comparison with another predicate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Combine {
    And,
    Or,
    Xor,
}

impl Combine {
    fn apply(self, first: bool, second: bool) -> bool {
        match self {
            Combine::And => first & second,
            Combine::Or => first | second,
            Combine::Xor => first ^ second,
        }
    }

    /// The value of the other predicate that determines the result of the operator alone.
    fn absorbing(self) -> Option<u64> {
        match self {
            Combine::And => Some(0),
            Combine::Or => Some(1),
            Combine::Xor => None,
        }
    }
}

const COMBINES: [(&str, Combine); 3] = [("and", Combine::And), ("or", Combine::Or), ("xor", Combine::Xor)];

/// The types that can be compared, besides pairs of halves.
const COMPARED: [Type; 13] = [
    Type::B16,
    Type::B32,
    Type::B64,
    Type::U16,
    Type::U32,
    Type::U64,
    Type::S16,
    Type::S32,
    Type::S64,
    Type::F16,
    Type::Bf16,
    Type::F32,
    Type::F64,
];

/// Takes a comparison that this type supports.
fn comparison(form: &mut Form<'_>, ty: Type) -> Result<Comparison, Unsupported> {
    let Some((comparison, group)) = form.one_of(&COMPARISONS) else {
        return Err(form.error(format!("`{}` needs a comparison, such as `.eq`", form.opcode())));
    };
    let is_unsigned = matches!(ty, Type::U16 | Type::U32 | Type::U64);
    let fits = match group {
        For::Any => true,
        For::Ordered => is_unsigned || ty.is_signed() || ty.is_float(),
        For::Unsigned => is_unsigned,
        For::Floats => ty.is_float(),
    };
    if fits { Ok(comparison) } else { Err(form.error(format!("type `{ty}` has no such comparison"))) }
}

/// Takes `.ftz`, if the type supports it.
fn flushes(form: &mut Form<'_>, ty: Type) -> bool {
    matches!(ty, Type::F32 | Type::F16 | Type::F16x2) && form.flag("ftz")
}

fn relation_of_floats<T: Float>(a: u64, b: u64, flushes: bool) -> Option<Ordering> {
    let value = |bits: u64| T::value(if flushes { T::flush(bits) } else { bits });
    value(a).partial_cmp(&value(b))
}

/// The relation of two values of a type; `None` if one is a NaN.
fn relation(ty: Type, flushes: bool) -> fn(u64, u64) -> Option<Ordering> {
    match (ty, flushes) {
        (Type::F16 | Type::F16x2, false) => |a, b| relation_of_floats::<F16>(a, b, false),
        (Type::F16 | Type::F16x2, true) => |a, b| relation_of_floats::<F16>(a, b, true),
        (Type::Bf16 | Type::Bf16x2, _) => |a, b| relation_of_floats::<Bf16>(a, b, false),
        (Type::F32, false) => |a, b| relation_of_floats::<F32>(a, b, false),
        (Type::F32, true) => |a, b| relation_of_floats::<F32>(a, b, true),
        (Type::F64, _) => |a, b| relation_of_floats::<F64>(a, b, false),
        (Type::S16, _) => |a, b| Some((a as i16).cmp(&(b as i16))),
        (Type::S32, _) => |a, b| Some((a as i32).cmp(&(b as i32))),
        (Type::S64, _) => |a, b| Some((a as i64).cmp(&(b as i64))),
        _ => |a, b| Some(a.cmp(&b)),
    }
}

fn halves(ty: Type) -> bool {
    matches!(ty, Type::F16x2 | Type::Bf16x2)
}

/// Takes the predicate of a `.BoolOp`. Without an operator, returns a neutral predicate.
fn other(form: &mut Form<'_>, combine: Option<Combine>) -> Result<(Combine, Value), Unsupported> {
    match combine {
        Some(combine) => Ok((combine, form.source(Type::Pred)?)),
        None => Ok((Combine::And, Value::Bits(1))),
    }
}

/// `setp.CmpOp{.BoolOp}{.ftz}.type p|q, a, b, c`: `q` is computed like `p`, but from the inverse result of the comparison. For types of two
/// halves, `p` belongs to the low halves and `q` to the high halves.
pub(super) fn setp(form: &mut Form<'_>) -> Decoded {
    let ty = form.ty()?;
    if !COMPARED.contains(&ty) && !halves(ty) {
        return Err(no_type(form, ty));
    }
    let comparison = comparison(form, ty)?;
    let flushes = flushes(form, ty);
    let combine = form.one_of(&COMBINES);
    let destinations = match ty {
        Type::F16 | Type::Bf16 => [form.destination(Type::Pred)?, None],
        _ => form.destination_pair(Type::Pred, Type::Pred)?,
    };
    let [a, b] = sources(form, [ty; 2])?;
    let (combine, other) = other(form, combine)?;
    let relation = relation(ty, flushes);
    let class = if ty.is_float() { Class::Float } else { Class::Integer };
    let absorbing = [None, None, combine.absorbing()];
    if halves(ty) {
        return paired_absorbed(class, destinations, [a, b, other], absorbing, move |[a, b, other]| {
            [0, 16].map(|shift| {
                let holds = comparison.accepts(relation(a >> shift & 0xffff, b >> shift & 0xffff));
                u64::from(combine.apply(holds, other != 0))
            })
        });
    }
    paired_absorbed(class, destinations, [a, b, other], absorbing, move |[a, b, other]| {
        let holds = comparison.accepts(relation(a, b));
        [holds, !holds].map(|holds| u64::from(combine.apply(holds, other != 0)))
    })
}

/// `set.CmpOp{.BoolOp}{.ftz}.dtype.stype d, a, b, c`: the result is all ones or 1.0 if the condition is true, otherwise 0.
pub(super) fn set(form: &mut Form<'_>) -> Decoded {
    let result = form.ty()?;
    let ty = form.ty()?;
    let fits = match ty {
        Type::F16x2 | Type::Bf16x2 => result == ty || matches!(result, Type::U32 | Type::S32),
        Type::F16 | Type::Bf16 => {
            result == ty || ty == Type::F16 && result == Type::Bf16 || matches!(result, Type::U16 | Type::S16 | Type::U32 | Type::S32)
        }
        _ if COMPARED.contains(&ty) => matches!(result, Type::U32 | Type::S32 | Type::F32 | Type::F16 | Type::Bf16),
        _ => false,
    };
    if !fits {
        return Err(form.error(format!("`set` has no types `{result}{ty}`")));
    }
    let comparison = comparison(form, ty)?;
    let flushes = result != Type::Bf16 && flushes(form, ty);
    let combine = form.one_of(&COMBINES);
    let destination = form.destination(result)?;
    let [a, b] = sources(form, [ty; 2])?;
    let (combine, other) = other(form, combine)?;
    let relation = relation(ty, flushes);
    let class = if ty.is_float() { Class::Float } else { Class::Integer };
    let absorbing = [None, None, combine.absorbing()];
    if halves(ty) {
        let on_true = match result {
            Type::F16x2 => F16::ONE,
            Type::Bf16x2 => Bf16::ONE,
            _ => 0xffff,
        };
        return absorbed(class, destination, [a, b, other], absorbing, move |[a, b, other]| {
            let half = |shift: u32| {
                let holds = comparison.accepts(relation(a >> shift & 0xffff, b >> shift & 0xffff));
                if combine.apply(holds, other != 0) { on_true << shift } else { 0 }
            };
            half(16) | half(0)
        });
    }
    let on_true = match result {
        Type::F16 => F16::ONE,
        Type::Bf16 => Bf16::ONE,
        Type::F32 => F32::ONE,
        _ => mask(result.bits()),
    };
    absorbed(class, destination, [a, b, other], absorbing, move |[a, b, other]| {
        if combine.apply(comparison.accepts(relation(a, b)), other != 0) { on_true } else { 0 }
    })
}

/// The types that can be selected.
const SELECTED: [Type; 11] =
    [Type::B16, Type::B32, Type::B64, Type::U16, Type::U32, Type::U64, Type::S16, Type::S32, Type::S64, Type::F32, Type::F64];

/// `selp`: `a` if the predicate is true, otherwise `b`.
pub(super) fn selp(form: &mut Form<'_>) -> Decoded {
    let ty = type_of(form, &SELECTED)?;
    let destination = form.destination(ty)?;
    let [first, second, predicate] = sources(form, [ty, ty, Type::Pred])?;
    Ok(Box::new(Select { destination, first, second, predicate }))
}

/// `selp`. Compilers replace branches by `selp`, so the operand that a lane does not select may be uninitialised.
struct Select {
    destination: Option<Register>,
    first: Value,
    second: Value,
    predicate: Value,
}

impl Instruction for Select {
    fn execute(&self, cx: &mut Cx<'_>) -> Result<Progress, Trap> {
        let mut unknown = Unknowns::new();
        let predicate = cx.read_through(cx.lanes, self.predicate, &mut unknown)?;
        let holds = cx.lanes.filter(|lane| predicate[lane] != 0);
        let first = cx.read_through(holds, self.first, &mut unknown)?;
        let second = cx.read_through(cx.lanes.without(holds), self.second, &mut unknown)?;
        cx.write(self.destination, &std::array::from_fn(|lane| if predicate[lane] != 0 { first[lane] } else { second[lane] }));
        cx.write_unknown(self.destination, &unknown);
        Ok(Progress::Done)
    }

    fn class(&self) -> Class {
        Class::Integer
    }
}

/// `slct`: `a` if the third operand is at least zero, otherwise `b`; a NaN selects `b`.
pub(super) fn slct(form: &mut Form<'_>) -> Decoded {
    let ty = type_of(form, &SELECTED)?;
    let selector = type_of(form, &[Type::S32, Type::F32])?;
    let flushes = flushes(form, selector);
    let destination = form.destination(ty)?;
    let sources = sources(form, [ty, ty, selector])?;
    lanewise(Class::Integer, destination, sources, move |[a, b, c]| {
        let is_at_least_zero = match selector {
            Type::S32 => number(c, Type::S32) >= 0,
            _ => F32::value(if flushes { F32::flush(c) } else { c }) >= 0.0,
        };
        if is_at_least_zero { a } else { b }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::instructions::harness::{Harness, refusal, with_registers};

    fn with(values: &[u64]) -> Harness {
        let mut harness = with_registers();
        for (index, &value) in values.iter().enumerate() {
            for (letter, ty) in [('d', Type::B64), ('r', Type::B32), ('h', Type::B16), ('p', Type::Pred)] {
                harness.define(&format!("%{letter}{}", index + 1), ty, |_| value & mask(ty.bits()));
            }
        }
        harness
    }

    fn run(text: &str, values: &[u64]) -> u64 {
        let mut harness = with(values);
        harness.run(text).unwrap();
        harness.value(&text.split_whitespace().nth(1).unwrap()[..3])[0]
    }

    #[test]
    fn every_comparison_of_floats() {
        let (small, large, nan) = (u64::from(1f32.to_bits()), u64::from(2f32.to_bits()), u64::from(f32::NAN.to_bits()));
        // The columns: less, equal, greater, unordered.
        for (name, expected) in [
            ("eq", [0, 1, 0, 0]),
            ("ne", [1, 0, 1, 0]),
            ("lt", [1, 0, 0, 0]),
            ("le", [1, 1, 0, 0]),
            ("gt", [0, 0, 1, 0]),
            ("ge", [0, 1, 1, 0]),
            ("equ", [0, 1, 0, 1]),
            ("neu", [1, 0, 1, 1]),
            ("ltu", [1, 0, 0, 1]),
            ("leu", [1, 1, 0, 1]),
            ("gtu", [0, 0, 1, 1]),
            ("geu", [0, 1, 1, 1]),
            ("num", [1, 1, 1, 0]),
            ("nan", [0, 0, 0, 1]),
        ] {
            let got = [[small, large], [large, large], [large, small], [nan, small]]
                .map(|values| run(&format!("setp.{name}.f32 %p0, %r1, %r2;"), &values));
            assert_eq!(got, expected, "{name}");
        }
    }

    #[test]
    fn integers_know_their_sign() {
        assert_eq!(run("setp.lt.s32 %p0, %r1, %r2;", &[0xffff_ffff, 1]), 1);
        assert_eq!(run("setp.lt.u32 %p0, %r1, %r2;", &[0xffff_ffff, 1]), 0);
        assert_eq!(run("setp.hi.u64 %p0, %d1, %d2;", &[u64::MAX, 1]), 1);
        assert_eq!(run("setp.ls.u16 %p0, %h1, %h2;", &[1, 1]), 1);
        assert_eq!(run("setp.ge.s16 %p0, %h1, -1;", &[0xfffe]), 0);
        assert_eq!(run("setp.ne.b64 %p0, %d1, %d2;", &[1 << 63, 0]), 1);
    }

    #[test]
    fn predicates_are_combined_and_paired() {
        let mut harness = with_registers();
        harness.define("%r1", Type::B32, |lane| (lane % 2) as u64);
        harness.define("%p3", Type::Pred, |lane| (lane / 2 % 2) as u64);
        harness.run("setp.eq.and.s32 %p0|%p1, %r1, 1, %p3;").unwrap();
        assert_eq!((&harness.value("%p0")[..4], &harness.value("%p1")[..4]), (&[0, 0, 0, 1][..], &[0, 0, 1, 0][..]));
        harness.run("setp.eq.or.s32 %p0|%p1, %r1, 1, !%p3;").unwrap();
        assert_eq!((&harness.value("%p0")[..4], &harness.value("%p1")[..4]), (&[1, 1, 0, 1][..], &[1, 1, 1, 0][..]));
        harness.run("setp.eq.xor.s32 %p0, %r1, 1, %p3;").unwrap();
        assert_eq!(harness.value("%p0")[..4], [0, 1, 1, 0]);
        harness.run("setp.eq.s32 %p0|%p1, %r1, 1;").unwrap();
        assert_eq!((&harness.value("%p0")[..2], &harness.value("%p1")[..2]), (&[0, 1][..], &[1, 0][..]));
    }

    #[test]
    fn halves_have_their_own_predicates() {
        let mut harness = with(&[0x3c00_4000, 0x4000_3c00]);
        harness.run("setp.lt.f16x2 %p3|%p4, %r1, %r2;").unwrap();
        assert_eq!((harness.value("%p3")[0], harness.value("%p4")[0]), (0, 1));
        assert_eq!(run("set.lt.f16x2.f16x2 %r0, %r1, %r2;", &[0x3c00_4000, 0x4000_3c00]), 0x3c00_0000);
        assert_eq!(run("set.gt.u32.bf16x2 %r0, %r1, %r2;", &[0x3f80_4000, 0x4000_3f80]), 0x0000_ffff);
        assert_eq!(run("setp.eq.ftz.f16 %p0, %h1, %h2;", &[1, 0]), 1);
        assert_eq!(run("setp.eq.bf16 %p0, %h1, %h2;", &[1, 0]), 0);
    }

    #[test]
    fn set_gives_ones_or_one() {
        assert_eq!(run("set.eq.u32.u32 %r0, %r1, %r2;", &[5, 5]), 0xffff_ffff);
        assert_eq!(run("set.ne.f32.s32 %r0, %r1, %r2;", &[5, 6]), F32::ONE);
        assert_eq!(run("set.lt.and.u32.f32 %r0, %r1, %r2, !%p3;", &[0, F32::ONE, 1]), 0);
        assert_eq!(run("set.lt.f16.f16 %h0, %h1, %h2;", &[0, 0x3c00]), 0x3c00);
        assert_eq!(run("set.eq.ftz.u32.f32 %r0, %r1, %r2;", &[1, 0x8000_0000]), 0xffff_ffff);
    }

    #[test]
    fn selections() {
        assert_eq!(run("selp.b32 %r0, %r1, %r2, %p3;", &[5, 6, 0]), 6);
        assert_eq!(run("selp.f64 %d0, 0d4000000000000000, %d2, %p3;", &[5, 6, 1]), 2f64.to_bits());
        assert_eq!(run("slct.u32.s32 %r0, %r1, %r2, %r3;", &[5, 6, 0xffff_ffff]), 6);
        assert_eq!(run("slct.f32.f32 %r0, %r1, %r2, %r3;", &[5, 6, 0x8000_0000]), 5);
        assert_eq!(run("slct.b64.f32 %d0, %d1, %d2, %r3;", &[5, 6, 0x7fc0_0000]), 6);
        assert_eq!(run("slct.ftz.b32.f32 %r0, %r1, %r2, %r3;", &[5, 6, 0x8000_0001]), 5);
    }

    #[test]
    fn forms_that_ptx_lacks_are_refused() {
        for text in [
            "setp.lo.s32 %p0, %r1, %r2;",
            "setp.lt.b32 %p0, %r1, %r2;",
            "setp.ltu.u32 %p0, %r1, %r2;",
            "setp.u32 %p0, %r1, %r2;",
            "setp.eq.f16 %p0|%p1, %h1, %h2;",
            "setp.eq.b8 %p0, %b1, %b2;",
            "setp.eq.ftz.f64 %p0, %d1, %d2;",
            "setp.eq.and.u32 %p0, %r1, %r2;",
            "setp.eq.u32 %p0, %r1, %r2, %p3;",
            "set.eq.u64.u32 %d0, %r1, %r2;",
            "set.eq.u32 %r0, %r1, %r2;",
            "selp.f16 %h0, %h1, %h2, %p3;",
            "selp.pred %p0, %p1, %p2, %p3;",
            "slct.b32.u32 %r0, %r1, %r2, %r3;",
        ] {
            assert!(refusal(text).is_some(), "{text}");
        }
    }
}
