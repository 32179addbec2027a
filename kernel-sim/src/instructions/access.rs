//! `ld`, `ldu` and `st`: PTX ISA, 9.7.9.8 to 9.7.9.12.

use crate::counters::Class;
use crate::fault::Trap;
use crate::instructions::hints::{self, Allowed};
use crate::instructions::ordering::{self, Semantics};
use crate::instructions::{Address, Form, Instruction, Progress, Register, Unsupported, Value};
use crate::lanes::WARP;
use crate::machine::{Access, Cx};
use crate::ptx::{Operand, Space, Type};

/// `ld`
struct Load {
    access: Access,
    address: Address,
    /// The type of an element.
    ty: Type,
    destinations: Vec<Destination>,
    policy: Option<Value>,
}

/// `st`
struct Store {
    access: Access,
    address: Address,
    ty: Type,
    sources: Vec<Value>,
    policy: Option<Value>,
}

/// A register to load into, and its bits: a signed value is extended to all of them.
#[derive(Clone, Copy)]
struct Destination {
    register: Option<Register>,
    bits: u32,
}

/// Decodes `ld`.
pub(crate) fn decode_load(form: &mut Form<'_>) -> Result<Box<dyn Instruction>, Unsupported> {
    let semantics = ordering::take_access(form, ("acquire", Semantics::Acquire))?;
    let space = form.space();
    let is_read_only = form.flag("nc");
    let operators: &[&str] = if is_read_only { &["ca", "cg", "cs"] } else { &["ca", "cg", "cs", "lu", "cv"] };
    let hints = hints::take(form, space, Allowed { operators, level1: true, prefetch: true })?;
    if is_read_only && (space != Space::Global || semantics.is_strong()) {
        return Err(form.error("`.nc` is for weak loads of `.global`"));
    }
    check_semantics(form, semantics, space, hints.has_operator)?;
    let (count, ty) = shape(form)?;
    let destinations = destinations(form, count, ty)?;
    let address = form.address(space)?;
    let policy = hints.policy(form)?;
    let access = access("load", address.space, count, ty, semantics);
    Ok(Box::new(Load { access, address, ty, destinations, policy }))
}

/// Decodes `ldu`: a load of global memory that is the same in all threads, which is advice and no promise.
pub(crate) fn decode_uniform_load(form: &mut Form<'_>) -> Result<Box<dyn Instruction>, Unsupported> {
    let space = form.space();
    if !matches!(space, Space::Global | Space::Generic) {
        return Err(form.error(format!("`ldu` loads from global memory, not from {space} memory")));
    }
    let (count, ty) = shape(form)?;
    let destinations = destinations(form, count, ty)?;
    let address = form.address(space)?;
    let access = access("load", address.space, count, ty, Semantics::Weak);
    Ok(Box::new(Load { access, address, ty, destinations, policy: None }))
}

/// Decodes `st`.
pub(crate) fn decode_store(form: &mut Form<'_>) -> Result<Box<dyn Instruction>, Unsupported> {
    let semantics = ordering::take_access(form, ("release", Semantics::Release))?;
    let space = form.space();
    if space == Space::Const {
        return Err(form.error("constant memory can not be stored to"));
    }
    let hints = hints::take(form, space, Allowed { operators: &["wb", "cg", "cs", "wt"], level1: true, prefetch: false })?;
    check_semantics(form, semantics, space, hints.has_operator)?;
    let (count, ty) = shape(form)?;
    let address = form.address(space)?;
    if address.space == Space::Param {
        return Err(form.error("a parameter of a kernel can not be stored to"));
    }
    let sources = form.sources(count, ty)?;
    let policy = hints.policy(form)?;
    let access = access("store", address.space, count, ty, semantics);
    Ok(Box::new(Store { access, address, ty, sources, policy }))
}

fn access(name: &'static str, space: Space, count: usize, ty: Type, semantics: Semantics) -> Access {
    Access { strong: semantics.is_strong(), ..Access::plain(name, space, count as u32 * ty.bytes()) }
}

fn check_semantics(form: &Form<'_>, semantics: Semantics, space: Space, has_operator: bool) -> Result<(), Unsupported> {
    if !semantics.is_strong() {
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

/// Takes `.v2` or `.v4` and the type of an element.
fn shape(form: &mut Form<'_>) -> Result<(usize, Type), Unsupported> {
    let count = form.one_of(&[("v2", 2), ("v4", 4), ("v8", 8)]).unwrap_or(1);
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

/// A register of a floating-point type takes bits of its size, or its own type.
fn check_kind(form: &Form<'_>, own: Type, ty: Type) -> Result<(), Unsupported> {
    let is_bits = matches!(ty, Type::B8 | Type::B16 | Type::B32 | Type::B64 | Type::B128);
    if own.is_float() && !is_bits && own != ty {
        return Err(form.error(format!("a `{own}` register can not hold a `{ty}`")));
    }
    Ok(())
}

/// A strong access of memory that CTAs share is there to see what others do.
fn crosses_ctas(access: Access) -> bool {
    access.strong && matches!(access.space, Space::Global | Space::Generic)
}

fn class(space: Space) -> Class {
    if matches!(space, Space::Shared | Space::SharedCluster) { Class::Shared } else { Class::Memory }
}

/// An element of a value that was loaded, as a register of `register_bits` holds it.
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
        let loaded = cx.load(self.access, &addresses)?;
        let bits = self.ty.bits();
        for (element, destination) in self.destinations.iter().enumerate() {
            let shift = element as u32 * bits;
            let mask = u64::MAX >> 64u32.saturating_sub(bits);
            let row = std::array::from_fn(|lane| extend((loaded[lane] >> shift) as u64 & mask, self.ty, destination.bits));
            cx.write(destination.register, &row);
            if destination.bits == 128 {
                let high = std::array::from_fn(|lane| if bits == 128 { (loaded[lane] >> 64) as u64 } else { 0 });
                cx.write(destination.register.map(Register::high), &high);
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
        Ok(Progress::Done)
    }

    fn crosses_ctas(&self) -> bool {
        crosses_ctas(self.access)
    }

    fn class(&self) -> Class {
        class(self.access.space)
    }
}

/// A policy is opaque, but its register must have been written.
fn read_policy(cx: &Cx<'_>, policy: Option<Value>) -> Result<(), Trap> {
    policy.map_or(Ok(()), |policy| cx.read(policy).map(drop))
}
