//! `ld`, `ldu` and `st`: PTX ISA, 9.7.9.8 to 9.7.9.12.

use crate::counters::Class;
use crate::fault::Trap;
use crate::instructions::hints::{self, Allowed};
use crate::instructions::ordering::{self, Ordering, Semantics};
use crate::instructions::{Address, Form, Instruction, Progress, Register, Unsupported, Value};
use crate::lanes::WARP;
use crate::machine::{Access, Cx, Missing, Unknowns};
use crate::ptx::{Operand, Space, Type};

/// `ld`
struct Load {
    access: Access,
    ordering: Ordering,
    address: Address,
    /// The type of an element.
    ty: Type,
    destinations: Vec<Destination>,
    policy: Option<Value>,
}

/// `st`
struct Store {
    access: Access,
    ordering: Ordering,
    address: Address,
    ty: Type,
    sources: Vec<Value>,
    policy: Option<Value>,
}

/// A destination register and its width. Signed values are sign-extended to the width.
#[derive(Clone, Copy)]
struct Destination {
    register: Option<Register>,
    bits: u32,
}

/// Decodes `ld`.
pub(crate) fn decode_load(form: &mut Form<'_>) -> Result<Box<dyn Instruction>, Unsupported> {
    let is_mmio = form.has(&["mmio"]);
    let ordering = ordering::take_access(form, ("acquire", Semantics::Acquire))?;
    let space = form.space();
    let is_read_only = form.flag("nc");
    let operators: &[&str] = if is_read_only { &["ca", "cg", "cs"] } else { &["ca", "cg", "cs", "lu", "cv"] };
    let hints = hints::take(form, space, Allowed { operators, level1: true, prefetch: true })?;
    if is_read_only && (space != Space::Global || ordering.is_strong()) {
        return Err(form.error("`.nc` is for weak loads of `.global`"));
    }
    check_semantics(form, ordering, space, hints.has_operator)?;
    let (count, ty) = shape(form, is_mmio)?;
    let destinations = destinations(form, count, ty)?;
    let address = form.address(space)?;
    let policy = hints.policy(form)?;
    let access = access("load", address.space, count, ty, ordering);
    Ok(Box::new(Load { access, ordering, address, ty, destinations, policy }))
}

/// Decodes `ldu`: a load from global memory. Its uniformity over all threads is a hint that the simulator does not check.
pub(crate) fn decode_uniform_load(form: &mut Form<'_>) -> Result<Box<dyn Instruction>, Unsupported> {
    let space = form.space();
    if !matches!(space, Space::Global | Space::Generic) {
        return Err(form.error(format!("`ldu` loads from global memory, not from {space} memory")));
    }
    let (count, ty) = shape(form, false)?;
    let destinations = destinations(form, count, ty)?;
    let address = form.address(space)?;
    let access = access("load", address.space, count, ty, Ordering::WEAK);
    Ok(Box::new(Load { access, ordering: Ordering::WEAK, address, ty, destinations, policy: None }))
}

/// Decodes `st`.
pub(crate) fn decode_store(form: &mut Form<'_>) -> Result<Box<dyn Instruction>, Unsupported> {
    let is_mmio = form.has(&["mmio"]);
    let ordering = ordering::take_access(form, ("release", Semantics::Release))?;
    let space = form.space();
    if space == Space::Const {
        return Err(form.error("constant memory can not be stored to"));
    }
    let hints = hints::take(form, space, Allowed { operators: &["wb", "cg", "cs", "wt"], level1: true, prefetch: false })?;
    check_semantics(form, ordering, space, hints.has_operator)?;
    let (count, ty) = shape(form, is_mmio)?;
    let address = form.address(space)?;
    if address.space == Space::Param {
        return Err(form.error("a parameter of a kernel can not be stored to"));
    }
    let sources = sources(form, count, ty)?;
    let policy = hints.policy(form)?;
    let access = access("store", address.space, count, ty, ordering);
    Ok(Box::new(Store { access, ordering, address, ty, sources, policy }))
}

fn access(name: &'static str, space: Space, count: usize, ty: Type, ordering: Ordering) -> Access {
    Access { element: ty.bytes(), scope: ordering.scope, ..Access::plain(name, space, count as u32 * ty.bytes()) }
}

fn check_semantics(form: &Form<'_>, ordering: Ordering, space: Space, has_operator: bool) -> Result<(), Unsupported> {
    if !ordering.is_strong() {
        return Ok(());
    }
    if !matches!(space, Space::Global | Space::Shared | Space::SharedCluster | Space::Generic) {
        return Err(form.error(format!("an access to {space} memory is always weak: only its own thread sees it, or nobody writes it")));
    }
    if has_operator {
        return Err(form.error("a cache operator is for weak accesses only"));
    }
    Ok(())
}

/// Takes `.v2` or `.v4`, and the element type.
fn shape(form: &mut Form<'_>, is_mmio: bool) -> Result<(usize, Type), Unsupported> {
    let count = form.one_of(&[("v2", 2), ("v4", 4), ("v8", 8)]).unwrap_or(1);
    if is_mmio && count > 1 {
        return Err(form.error("`.mmio` is for one element"));
    }
    let ty = form.ty()?;
    let is_plain = !ty.is_float() && !matches!(ty, Type::Pred | Type::U16x2 | Type::S16x2 | Type::U4 | Type::S4 | Type::B1);
    if !is_plain && !matches!(ty, Type::F32 | Type::F64) {
        return Err(form.error(format!("memory holds no `{ty}`: use the bits type of its size, such as `.b16`")));
    }
    let bytes = count as u32 * ty.bytes();
    if bytes > 16 || count == 8 {
        return Err(form.error(format!("`.v{count}{ty}` is {bytes} bytes, and an access has 16 at most, or 4 elements, before `sm_100`")));
    }
    Ok((count, ty))
}

fn destinations(form: &mut Form<'_>, count: usize, ty: Type) -> Result<Vec<Destination>, Unsupported> {
    let parts = form.parts(count)?;
    let take = |part: &&Operand| {
        if let Some(own) = form.register_type(part) {
            check_kind(form, own, ty)?;
        }
        let bits = form.register_type(part).map_or(ty.bits(), Type::bits);
        Ok(Destination { register: form.as_destination(part, ty, true)?, bits })
    };
    let destinations: Vec<Destination> = parts.iter().map(take).collect::<Result<_, _>>()?;
    match destinations.iter().all(|destination| destination.register.is_none()) {
        true => Err(form.error("nothing is loaded: every destination is `_`")),
        false => Ok(destinations),
    }
}

fn sources(form: &mut Form<'_>, count: usize, ty: Type) -> Result<Vec<Value>, Unsupported> {
    let parts = form.parts(count)?;
    let take = |part: &&Operand| {
        if let Some(own) = form.register_type(part) {
            check_kind(form, own, ty)?;
        }
        form.as_source(part, ty, true)
    };
    parts.iter().map(take).collect()
}

/// Checks that the register fits the type: a floating-point register accepts its own type and untyped bits of its size.
fn check_kind(form: &Form<'_>, own: Type, ty: Type) -> Result<(), Unsupported> {
    let is_bits = matches!(ty, Type::B8 | Type::B16 | Type::B32 | Type::B64 | Type::B128);
    if own.is_float() && !is_bits && own != ty {
        return Err(form.error(format!("a `{own}` register can not hold a `{ty}`")));
    }
    Ok(())
}

/// Whether the access may observe other CTAs: a strong access to memory that CTAs share.
fn crosses_ctas(access: Access) -> bool {
    access.scope.is_some() && matches!(access.space, Space::Global | Space::Generic)
}

fn class(space: Space) -> Class {
    if matches!(space, Space::Shared | Space::SharedCluster) { Class::Shared } else { Class::Memory }
}

/// Extends a loaded element to a register of `register_bits`.
fn extend(bits: u64, ty: Type, register_bits: u32) -> u64 {
    if !ty.is_signed() || register_bits <= ty.bits() {
        return bits;
    }
    let unused = 64 - ty.bits();
    let extended = ((bits << unused) as i64 >> unused) as u64;
    if register_bits >= 64 { extended } else { extended & ((1 << register_bits) - 1) }
}

impl Instruction for Load {
    fn execute(&self, cx: &mut Cx<'_>) -> Result<Progress, Trap> {
        let addresses = cx.addresses(self.address)?;
        read_policy(cx, self.policy)?;
        let (loaded, missing) = cx.load_through(self.access, &addresses)?;
        ordering::observe(cx, self.ordering, self.access.space, &addresses);
        let bits = self.ty.bits();
        for (element, destination) in self.destinations.iter().enumerate() {
            let shift = element as u32 * bits;
            let mask = u64::MAX >> 64u32.saturating_sub(bits);
            let row = std::array::from_fn(|lane| extend((loaded[lane] >> shift) as u64 & mask, self.ty, destination.bits));
            cx.write(destination.register, &row);
            let unknown = unknown(&missing, shift / 8, bits / 8);
            cx.write_unknown(destination.register, &unknown);
            if destination.bits == 128 {
                let high = std::array::from_fn(|lane| if bits == 128 { (loaded[lane] >> 64) as u64 } else { 0 });
                cx.write(destination.register.map(Register::high), &high);
                cx.write_unknown(destination.register.map(Register::high), &unknown);
            }
        }
        Ok(Progress::Done)
    }

    fn crosses_ctas(&self) -> bool {
        crosses_ctas(self.access)
    }

    fn class(&self) -> Class {
        class(self.access.space)
    }
}

impl Instruction for Store {
    fn execute(&self, cx: &mut Cx<'_>) -> Result<Progress, Trap> {
        let addresses = cx.addresses(self.address)?;
        read_policy(cx, self.policy)?;
        let bits = self.ty.bits();
        let mask = u64::MAX >> 64u32.saturating_sub(bits);
        let mut values = [0u128; WARP];
        for (element, &source) in self.sources.iter().enumerate() {
            let row = cx.read(source)?;
            for lane in cx.lanes {
                values[lane] |= u128::from(row[lane] & mask) << (element as u32 * bits);
            }
            if let (128, Value::Register(register)) = (bits, source) {
                let high = cx.read(Value::Register(register.high()))?;
                cx.lanes.into_iter().for_each(|lane| values[lane] |= u128::from(high[lane]) << 64);
            }
        }
        cx.store(self.access, &addresses, &values)?;
        ordering::publish(cx, self.ordering, false, self.access.space, &addresses);
        Ok(Progress::Done)
    }

    fn crosses_ctas(&self) -> bool {
        crosses_ctas(self.access)
    }

    fn class(&self) -> Class {
        class(self.access.space)
    }
}

/// The lanes in which one of these bytes is uninitialised.
fn unknown(missing: &[Missing], first: u32, bytes: u32) -> Unknowns {
    let mask = (u16::MAX >> (16 - bytes.min(16))) << first;
    missing.iter().filter(|missing| missing.bytes & mask != 0).map(|missing| (missing.lane, missing.unknown.clone())).collect()
}

/// Reads a cache policy. The policy is opaque, but its register must be initialised.
fn read_policy(cx: &Cx<'_>, policy: Option<Value>) -> Result<(), Trap> {
    policy.map_or(Ok(()), |policy| cx.read(policy).map(drop))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::FaultKind;
    use crate::instructions::harness::{Failure, Harness};
    use crate::memory::GlobalMemory;

    /// Each lane has a pointer `%g` to its own 16 bytes of global memory, and a pointer `%s` to its own 16 bytes of shared memory.
    fn harness() -> Harness {
        let memory = GlobalMemory::new(1 << 20);
        let address = memory.allocate(512).expect("there is free memory");
        let bytes: Vec<u8> = (0..512u32).map(|index| (index * 7 + 0x80) as u8).collect();
        memory.write(address, &bytes).expect("it is allocated");
        let mut harness = Harness::new();
        harness.grid.global = memory.view();
        harness.define("%g", Type::U64, |lane| address + 16 * lane as u64);
        harness.define("%s", Type::U32, |lane| 16 * lane as u64);
        harness
    }

    fn run(harness: &mut Harness, text: &str) {
        if let Err(failure) = harness.run(text) {
            panic!("{text} {failure:?}");
        }
    }

    /// A byte of a lane's own 16 bytes.
    fn byte(lane: usize, index: usize) -> u64 {
        ((16 * lane + index) * 7 + 0x80) as u64 & 0xff
    }

    #[test]
    fn narrow_values_are_extended_to_their_register() {
        let mut harness = harness();
        for (name, ty) in [("%h", Type::S16), ("%r", Type::S32), ("%d", Type::S64), ("%u", Type::U64)] {
            harness.declare(name, ty);
        }
        run(&mut harness, "ld.global.s8 %h, [%g];");
        run(&mut harness, "ld.global.s8 %r, [%g];");
        run(&mut harness, "ld.global.s16 %d, [%g];");
        run(&mut harness, "ld.global.u16 %u, [%g];");
        for lane in 0..32 {
            let low = byte(lane, 0) as i8;
            let both = (byte(lane, 0) | byte(lane, 1) << 8) as u16;
            assert_eq!(harness.value("%h")[lane], u64::from(low as i16 as u16));
            assert_eq!(harness.value("%r")[lane], u64::from(i32::from(low) as u32));
            assert_eq!(harness.value("%d")[lane], i64::from(both as i16) as u64);
            assert_eq!(harness.value("%u")[lane], u64::from(both));
        }
    }

    #[test]
    fn vectors_and_wide_values_keep_their_order() {
        let mut harness = harness();
        for name in ["%a", "%b", "%c", "%d"] {
            harness.declare(name, Type::B32);
        }
        for name in ["%h0", "%h1"] {
            harness.declare(name, Type::B16);
        }
        for name in ["%x", "%y"] {
            harness.declare(name, Type::B64);
        }
        harness.declare("%q", Type::B128);
        run(&mut harness, "ld.global.b128 %q, [%g];");
        run(&mut harness, "st.shared.b128 [%s], %q;");
        run(&mut harness, "ld.shared.v4.b32 {%a, %b, %c, %d}, [%s];");
        run(&mut harness, "ld.shared.v2.b64 {_, %y}, [%s];");
        run(&mut harness, "st.shared.v2.b32 [%s+8], {%b, %a};");
        run(&mut harness, "ld.shared.v2.b64 {%x, _}, [%s];");
        run(&mut harness, "ld.shared.v2.u16 {%h0, %h1}, [%s+8];");
        for lane in 0..32 {
            let word = |index: usize| (0..4).rev().fold(0, |word, part| word << 8 | byte(lane, 4 * index + part));
            assert_eq!(["%a", "%b", "%c", "%d"].map(|name| harness.value(name)[lane]), [0, 1, 2, 3].map(word));
            assert_eq!(harness.value("%y")[lane], word(2) | word(3) << 32);
            assert_eq!(harness.value("%x")[lane], word(0) | word(1) << 32);
            assert_eq!(["%h0", "%h1"].map(|name| harness.value(name)[lane]), [word(1) & 0xffff, word(1) >> 16]);
        }
    }

    #[test]
    fn a_store_takes_the_low_bits_of_a_wide_register() {
        let mut harness = harness();
        harness.define("%r", Type::U32, |lane| 0xdead_be00 + lane as u64);
        harness.declare("%a", Type::U32);
        run(&mut harness, "st.shared.u32 [%s], 0;");
        run(&mut harness, "st.shared.u8 [%s+1], %r;");
        run(&mut harness, "ld.shared.u32 %a, [%s];");
        assert_eq!(harness.value("%a")[5], 5 << 8);
    }

    #[test]
    fn faults_name_the_lane_and_the_address() {
        let mut harness = harness();
        for name in ["%a", "%b", "%c", "%d"] {
            harness.declare(name, Type::B32);
        }
        let misaligned = harness.run("ld.global.v4.b32 {%a, %b, %c, %d}, [%g+4];");
        assert!(matches!(misaligned, Err(Failure::Trap(0, FaultKind::Misaligned { alignment: 16, .. }))), "{misaligned:?}");
        let outside = harness.run("ld.global.v4.b32 {%a, %b, %c, %d}, [%g+16];");
        assert!(matches!(outside, Err(Failure::Trap(31, FaultKind::OutOfBounds { bytes: 16, .. }))), "{outside:?}");
        // The second word is uninitialised, but the first word is usable.
        run(&mut harness, "st.shared.b32 [%s], 5;");
        run(&mut harness, "ld.shared.v2.b32 {%a, %b}, [%s];");
        run(&mut harness, "st.shared.b32 [%s], %a;");
        let unwritten = harness.run("st.shared.b32 [%s], %b;");
        assert!(matches!(unwritten, Err(Failure::Trap(0, FaultKind::UninitialisedMemory { address: 4, .. }))), "{unwritten:?}");
        // The register of the policy must be initialised.
        harness.declare("%policy", Type::B64);
        let policy = harness.run("ld.global.L2::cache_hint.b32 %a, [%g], %policy;");
        assert!(matches!(policy, Err(Failure::Trap(0, FaultKind::UninitialisedRegister { .. }))), "{policy:?}");
        run(&mut harness, "createpolicy.fractional.L2::evict_first.b64 %policy, 1.0;");
        run(&mut harness, "ld.global.L2::cache_hint.b32 %a, [%g], %policy;");
    }
}
