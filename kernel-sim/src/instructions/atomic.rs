//! `atom` and `red`: PTX ISA, 9.7.13.5 and 9.7.13.6.

use half::{bf16, f16};

use crate::counters::Class;
use crate::fault::{FaultKind, Trap};
use crate::instructions::hints::{self, Allowed};
use crate::instructions::ordering::{self, Ordering, Semantics};
use crate::instructions::{Address, Form, Instruction, Progress, Register, Unsupported, Value};
use crate::lanes::{Row, WARP, WideRow};
use crate::machine::{Access, Cx, window};
use crate::ptx::{Space, Type};

/// `atom`, and `red` without destinations.
struct Atomic {
    access: Access,
    ordering: Ordering,
    address: Address,
    operation: Reduction,
    ty: Type,
    destinations: Vec<Option<Register>>,
    /// The operand `b`, one value for each element.
    operands: Vec<Value>,
    /// The operand `c` of `cas`.
    replacement: Option<Value>,
    policy: Option<Value>,
}

/// The operation of an atomic.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Reduction {
    And,
    Or,
    Xor,
    Exchange,
    CompareAndSwap,
    Add,
    Increment,
    Decrement,
    Min,
    Max,
}

pub(crate) const REDUCTIONS: [(&str, Reduction); 10] = [
    ("and", Reduction::And),
    ("or", Reduction::Or),
    ("xor", Reduction::Xor),
    ("exch", Reduction::Exchange),
    ("cas", Reduction::CompareAndSwap),
    ("add", Reduction::Add),
    ("inc", Reduction::Increment),
    ("dec", Reduction::Decrement),
    ("min", Reduction::Min),
    ("max", Reduction::Max),
];

/// Decodes `atom`.
pub(crate) fn decode_atomic(form: &mut Form<'_>) -> Result<Box<dyn Instruction>, Unsupported> {
    let choices = [
        ("relaxed", Semantics::Relaxed),
        ("acquire", Semantics::Acquire),
        ("release", Semantics::Release),
        ("acq_rel", Semantics::AcquireRelease),
    ];
    let ordering = ordering::take_atomic(form, &choices);
    decode(form, ordering, true)
}

/// Decodes `red`: an `atom` without a result, which therefore cannot acquire.
pub(crate) fn decode_reduction(form: &mut Form<'_>) -> Result<Box<dyn Instruction>, Unsupported> {
    let ordering = ordering::take_atomic(form, &[("relaxed", Semantics::Relaxed), ("release", Semantics::Release)]);
    decode(form, ordering, false)
}

fn decode(form: &mut Form<'_>, ordering: Ordering, has_result: bool) -> Result<Box<dyn Instruction>, Unsupported> {
    let opcode = form.opcode();
    let space = form.space();
    if !matches!(space, Space::Global | Space::Shared | Space::SharedCluster | Space::Generic) {
        return Err(form.error(format!("`{opcode}` is for global and shared memory, not for {space} memory")));
    }
    let hints = hints::take(form, space, Allowed { operators: &[], level1: false, prefetch: false })?;
    let operation = form.one_of(&REDUCTIONS).ok_or_else(|| form.error(format!("`{opcode}` needs an operation, such as `.add`")))?;
    if !has_result && matches!(operation, Reduction::Exchange | Reduction::CompareAndSwap) {
        return Err(form.error("`red` has no `.exch` and no `.cas`: use `atom`"));
    }
    let count = form.one_of(&[("v2", 2), ("v4", 4), ("v8", 8)]);
    let keeps_subnormals = form.flag("noftz");
    let ty = form.ty()?;
    check_type(form, operation, ty, count)?;
    let is_half = matches!(ty, Type::F16 | Type::F16x2 | Type::Bf16 | Type::Bf16x2);
    match (is_half, keeps_subnormals) {
        (true, false) => return Err(form.error(format!("`{opcode}` of `{ty}` needs `.noftz`"))),
        (false, true) => return Err(form.error(format!("`.noftz` is not for `{ty}`"))),
        _ => {}
    }
    if count.is_some() && !matches!(space, Space::Global | Space::Generic) {
        return Err(form.error(format!("`{opcode}` of a vector is for global memory, not for {space} memory")));
    }
    let elements = count.unwrap_or(1);
    let destinations = if has_result { form.destinations(elements, ty)? } else { Vec::new() };
    let address = form.address(space)?;
    let operands = form.sources(elements, ty)?;
    let replacement = if operation == Reduction::CompareAndSwap { Some(form.source(ty)?) } else { None };
    let policy = hints.policy(form)?;
    let access =
        Access { element: ty.bytes(), scope: ordering.scope, ..Access::plain("atomic", address.space, elements as u32 * ty.bytes()) };
    Ok(Box::new(Atomic { access, ordering, address, operation, ty, destinations, operands, replacement, policy }))
}

/// Checks the type of an operation. Vectors are legal for `.add` of `.f32`, and for `.add`, `.min` and `.max` of the half types.
fn check_type(form: &Form<'_>, operation: Reduction, ty: Type, count: Option<usize>) -> Result<(), Unsupported> {
    use Reduction::*;
    let name = REDUCTIONS.iter().find(|(_, known)| *known == operation).map_or("", |(name, _)| name);
    let is_legal = match (count, ty) {
        (None, Type::B32 | Type::B64) => matches!(operation, And | Or | Xor | Exchange | CompareAndSwap),
        (None, Type::B16) => operation == CompareAndSwap,
        (None, Type::B128) => matches!(operation, Exchange | CompareAndSwap),
        (None, Type::U32) => matches!(operation, Add | Increment | Decrement | Min | Max),
        (None, Type::S32 | Type::U64) => matches!(operation, Add | Min | Max),
        (None, Type::S64) => matches!(operation, Min | Max),
        (None | Some(2 | 4), Type::F32) => operation == Add,
        (None, Type::F64 | Type::F16 | Type::F16x2 | Type::Bf16 | Type::Bf16x2) => operation == Add,
        (Some(_), Type::F16 | Type::Bf16) | (Some(2 | 4), Type::F16x2 | Type::Bf16x2) => matches!(operation, Add | Min | Max),
        _ => false,
    };
    let vector = count.map_or(String::new(), |count| format!(".v{count}"));
    if is_legal { Ok(()) } else { Err(form.error(format!("`{}.{name}` has no type `{vector}{ty}`", form.opcode()))) }
}

impl Instruction for Atomic {
    fn execute(&self, cx: &mut Cx<'_>) -> Result<Progress, Trap> {
        let addresses = cx.addresses(self.address)?;
        if let Some(policy) = self.policy {
            cx.read(policy)?;
        }
        let bits = self.ty.bits();
        let operands: Vec<WideRow> = self.operands.iter().map(|&value| read_wide(cx, value, bits)).collect::<Result<_, _>>()?;
        let replacement = self.replacement.map(|value| read_wide(cx, value, bits)).transpose()?.unwrap_or([0; WARP]);
        let is_shared = self.shared_lanes(cx, &addresses)?;
        let mask = u128::MAX >> (128 - bits);
        let update = |lane: usize, old: u128| {
            operands.iter().enumerate().fold(0, |new, (element, operand)| {
                let shift = element as u32 * bits;
                let element = old >> shift & mask;
                new | apply(self.operation, self.ty, element, operand[lane], replacement[lane], !is_shared[lane]) << shift
            })
        };
        let old = cx.update(self.access, &addresses, &update)?;
        ordering::publish(cx, self.ordering, true, self.access.space, &addresses);
        ordering::observe(cx, self.ordering, self.access.space, &addresses);
        for (element, &destination) in self.destinations.iter().enumerate() {
            let part: WideRow = old.map(|old| old >> (element as u32 * bits) & mask);
            cx.write(destination, &part.map(|bits| bits as u64));
            if bits == 128 {
                cx.write(destination.map(Register::high), &part.map(|bits| (bits >> 64) as u64));
            }
        }
        Ok(Progress::Done)
    }

    fn crosses_ctas(&self) -> bool {
        // Integer sums, bounds and logic operations are commutative, so without a result the order is unobservable.
        let is_order_free = match self.operation {
            Reduction::And | Reduction::Or | Reduction::Xor | Reduction::Min | Reduction::Max => true,
            Reduction::Add => !self.ty.is_float(),
            Reduction::Exchange | Reduction::CompareAndSwap | Reduction::Increment | Reduction::Decrement => false,
        };
        let has_result = self.destinations.iter().any(Option::is_some);
        (has_result || !is_order_free) && matches!(self.access.space, Space::Global | Space::Generic)
    }

    fn class(&self) -> Class {
        if matches!(self.access.space, Space::Shared | Space::SharedCluster) { Class::Shared } else { Class::Memory }
    }
}

impl Atomic {
    /// The lanes whose address is in shared memory. A vector must not be there.
    fn shared_lanes(&self, cx: &Cx<'_>, addresses: &Row) -> Result<[bool; WARP], Trap> {
        let shared = match self.access.space {
            Space::Shared | Space::SharedCluster => [true; WARP],
            Space::Generic => addresses.map(|address| window::SHARED.contains(&address)),
            _ => [false; WARP],
        };
        match cx.lanes.into_iter().find(|&lane| shared[lane] && self.operands.len() > 1) {
            Some(lane) => Err(Trap::new(lane, FaultKind::Illegal { reason: "an atomic of a vector touches shared memory".to_owned() })),
            None => Ok(shared),
        }
    }
}

fn read_wide(cx: &Cx<'_>, value: Value, bits: u32) -> Result<WideRow, Trap> {
    let mut wide = cx.read(value)?.map(u128::from);
    if let (128, Value::Register(register)) = (bits, value) {
        let high = cx.read(Value::Register(register.high()))?;
        wide.iter_mut().zip(high).for_each(|(wide, high)| *wide |= u128::from(high) << 64);
    }
    let mask = u128::MAX >> (128 - bits);
    Ok(wide.map(|bits| bits & mask))
}

/// The new value of the element.
///
/// An `.f32` addition in global memory flushes subnormal operands and results to zeros of their sign; an addition in shared memory does not
/// (PTX ISA, 9.7.13.5, "current implementation"). `flushes` selects the behaviour.
pub(crate) fn apply(operation: Reduction, ty: Type, old: u128, operand: u128, replacement: u128, flushes: bool) -> u128 {
    let (a, b) = (old as u64, operand as u64);
    match operation {
        Reduction::And => old & operand,
        Reduction::Or => old | operand,
        Reduction::Xor => old ^ operand,
        Reduction::Exchange => operand,
        Reduction::CompareAndSwap => {
            if old == operand {
                replacement
            } else {
                old
            }
        }
        Reduction::Increment => u128::from(if a >= b { 0 } else { a + 1 }),
        Reduction::Decrement => u128::from(if a == 0 || a > b { b } else { a - 1 }),
        Reduction::Add => u128::from(add(ty, a, b, flushes)),
        Reduction::Min | Reduction::Max => u128::from(choose(operation == Reduction::Max, ty, a, b)),
    }
}

fn add(ty: Type, a: u64, b: u64, flushes: bool) -> u64 {
    match ty {
        Type::F32 => u64::from(add_f32(a as u32, b as u32, flushes)),
        Type::F64 => add_f64(a, b, flushes),
        Type::F16 | Type::Bf16 => u64::from(add_half(ty, a as u16, b as u16)),
        Type::F16x2 | Type::Bf16x2 => halves(ty, a, b, add_half),
        Type::U64 => a.wrapping_add(b),
        _ => u64::from((a as u32).wrapping_add(b as u32)),
    }
}

/// The sum of doubles. For NaNs, global memory returns the operand or else the old value, unchanged; shared memory returns the old value or
/// else the operand, made quiet.
fn add_f64(old: u64, operand: u64, is_global: bool) -> u64 {
    let is_nan = |bits: u64| f64::from_bits(bits).is_nan();
    let sum = (f64::from_bits(old) + f64::from_bits(operand)).to_bits();
    match (is_nan(old), is_nan(operand), is_global) {
        (_, true, true) => operand,
        (true, false, true) => old,
        (true, _, false) => old | 1 << 51,
        (false, true, false) => operand | 1 << 51,
        // The sum of infinities with opposite signs is the NaN with a sign and no payload.
        (false, false, _) => {
            if is_nan(sum) {
                0xfff8_0000_0000_0000
            } else {
                sum
            }
        }
    }
}

/// The NaN result of single precision.
const NAN_F32: u32 = 0x7fff_ffff;
/// The NaN result of both half types.
const NAN_HALF: u16 = 0x7fff;

fn add_f32(a: u32, b: u32, flushes: bool) -> u32 {
    let flush = |bits: u32| if flushes && f32::from_bits(bits).is_subnormal() { bits & 0x8000_0000 } else { bits };
    let sum = f32::from_bits(flush(a)) + f32::from_bits(flush(b));
    if sum.is_nan() { NAN_F32 } else { flush(sum.to_bits()) }
}

/// The sum of two halves. The intermediate `f32` has more than twice their precision plus two bits, so double rounding is harmless.
fn add_half(ty: Type, a: u16, b: u16) -> u16 {
    let sum = half_to_f32(ty, a) + half_to_f32(ty, b);
    match ty {
        _ if sum.is_nan() => NAN_HALF,
        Type::F16 | Type::F16x2 => f16::from_f32(sum).to_bits(),
        _ => bf16::from_f32(sum).to_bits(),
    }
}

fn half_to_f32(ty: Type, bits: u16) -> f32 {
    if matches!(ty, Type::F16 | Type::F16x2) { f16::from_bits(bits).to_f32() } else { bf16::from_bits(bits).to_f32() }
}

/// The minimum or the maximum of two values.
fn choose(larger: bool, ty: Type, a: u64, b: u64) -> u64 {
    let take_b = match ty {
        Type::S32 => (b as i32) < a as i32,
        Type::S64 => (b as i64) < a as i64,
        Type::F16 | Type::Bf16 => return u64::from(choose_half(larger, ty, a as u16, b as u16)),
        Type::F16x2 | Type::Bf16x2 => return halves(ty, a, b, |ty, a, b| choose_half(larger, ty, a, b)),
        _ => b < a,
    };
    if take_b != larger { b } else { a }
}

/// If one operand is a NaN, the result is the other one; -0 is less than +0.
fn choose_half(larger: bool, ty: Type, a: u16, b: u16) -> u16 {
    let (x, y) = (half_to_f32(ty, a), half_to_f32(ty, b));
    match (x.is_nan(), y.is_nan()) {
        (true, true) => NAN_HALF,
        (true, false) => b,
        (false, true) => a,
        (false, false) => {
            if y.total_cmp(&x).is_lt() != larger {
                b
            } else {
                a
            }
        }
    }
}

/// Applies an operation to each half of a pair.
fn halves(ty: Type, a: u64, b: u64, each: impl Fn(Type, u16, u16) -> u16) -> u64 {
    let low = each(ty, a as u16, b as u16);
    let high = each(ty, (a >> 16) as u16, (b >> 16) as u16);
    u64::from(low) | u64::from(high) << 16
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::instructions::harness::Harness;

    fn of(operation: Reduction, ty: Type, old: u64, operand: u64) -> u64 {
        apply(operation, ty, u128::from(old), u128::from(operand), 0, true) as u64
    }

    #[test]
    fn counters_wrap_at_their_bound() {
        let inc = |old, bound| of(Reduction::Increment, Type::U32, old, bound);
        assert_eq!([inc(0, 3), inc(2, 3), inc(3, 3), inc(9, 3)], [1, 3, 0, 0]);
        let dec = |old, bound| of(Reduction::Decrement, Type::U32, old, bound);
        assert_eq!([dec(0, 3), dec(1, 3), dec(3, 3), dec(9, 3)], [3, 0, 2, 3]);
    }

    #[test]
    fn integers_compare_with_their_sign() {
        assert_eq!(of(Reduction::Min, Type::U32, 0xffff_ffff, 1), 1);
        assert_eq!(of(Reduction::Min, Type::S32, 0xffff_ffff, 1), 0xffff_ffff);
        assert_eq!(of(Reduction::Max, Type::S64, u64::MAX, 1), 1);
        assert_eq!(of(Reduction::Max, Type::U64, u64::MAX, 1), u64::MAX);
        assert_eq!(of(Reduction::Add, Type::U32, 0xffff_ffff, 2), 1);
    }

    #[test]
    fn only_global_f32_sums_flush() {
        let (tiny, smallest_normal) = (1u32, f32::MIN_POSITIVE.to_bits());
        assert_eq!(add_f32(tiny, tiny, true), 0);
        assert_eq!(add_f32(tiny, tiny, false), 2);
        assert_eq!(add_f32(0x8000_0001, 0x8000_0000, true), 0x8000_0000);
        // A difference of normal numbers can be subnormal.
        assert_eq!(add_f32(smallest_normal + 1, smallest_normal | 0x8000_0000, true), 0);
        assert_eq!(add_f32(smallest_normal + 1, smallest_normal | 0x8000_0000, false), 1);
        assert_eq!(add_f32(0x7f80_0000, 0xff80_0000, false), NAN_F32);
    }

    #[test]
    fn halves_keep_subnormals_and_prefer_numbers() {
        assert_eq!(of(Reduction::Add, Type::F16, 1, 1), 2);
        assert_eq!(of(Reduction::Add, Type::Bf16, 1, 1), 2);
        // 2048 + 1 is a tie, and 2048 is even; 2050 + 1 rounds up.
        assert_eq!(of(Reduction::Add, Type::F16x2, 0x6800_6801, 0x3c00_3c00), 0x6800_6802);
        assert_eq!(of(Reduction::Min, Type::F16x2, 0x7e00_0000, 0x3c00_8000), 0x3c00_8000);
        assert_eq!(of(Reduction::Max, Type::Bf16, 0x8000, 0x0000), 0);
        assert_eq!(of(Reduction::Max, Type::Bf16, 0x7fc0, 0xffc1), 0x7fff);
    }

    /// All lanes add to one word with the initial value 5: each lane reads the sum of its predecessors.
    #[test]
    fn lanes_take_turns() {
        let mut harness = Harness::new();
        for (name, ty) in [("%old", Type::U32), ("%seen", Type::U32)] {
            harness.declare(name, ty);
        }
        harness.define("%lane", Type::U32, |lane| lane as u64);
        let mut run = |text: &str| harness.run(text).unwrap_or_else(|failure| panic!("{text} {failure:?}"));
        run("st.volatile.shared.u32 [64], 5;");
        run("atom.shared.add.u32 %old, [64], %lane;");
        run("red.shared.max.u32 [64], 7;");
        run("ld.volatile.shared.u32 %seen, [64];");
        run("atom.shared.cas.b32 _, [64], 501, %lane;");
        run("atom.shared.exch.b32 %seen, [64], %lane;");
        let expected: Row = std::array::from_fn(|lane| 5 + (lane * lane.saturating_sub(1) / 2) as u64);
        assert_eq!(harness.value("%old"), expected);
        // The `cas` of lane 0 reads 5 + 31 * 32 / 2 and stores 0. Each later lane reads the value that its predecessor stored.
        assert_eq!(harness.value("%seen"), std::array::from_fn(|lane| lane.saturating_sub(1) as u64));
    }
}
