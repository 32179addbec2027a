//! Cache hints: `prefetch`, `prefetchu`, `createpolicy`, `discard`, `applypriority` (PTX ISA, 9.7.9.15 to 9.7.9.18). The simulator reads
//! and checks their operands; the instructions have no other effect.

use crate::counters::Class;
use crate::fault::{FaultKind, Trap};
use crate::instructions::{Address, Form, Instruction, Progress, Register, Unsupported, Value};
use crate::lanes::WARP;
use crate::machine::Cx;
use crate::ptx::{Space, Type};

/// `prefetch`, `discard` and `applypriority`, which have an address operand.
struct Advice {
    address: Address,
    /// The required alignment of the address.
    alignment: u64,
}

/// `createpolicy`
struct CreatePolicy {
    destination: Option<Register>,
    /// The bits of the policy. Only cache hints of accesses read them.
    bits: u64,
    kind: Policy,
}

/// The kinds of policies.
enum Policy {
    /// For a fraction of the accesses.
    Fractional(Option<Value>),
    /// For a range of addresses.
    Range { address: Address, primary_bytes: Value, total_bytes: Value },
    /// From an access property of the CUDA API.
    Convert(Value),
}

/// Decodes `prefetch`.
pub(crate) fn decode_prefetch(form: &mut Form<'_>) -> Result<Box<dyn Instruction>, Unsupported> {
    let space = form.space();
    let is_allowed = if form.flag("tensormap") {
        matches!(space, Space::Generic | Space::Const | Space::Param)
    } else if form.flag("L1") || form.flag("L2") {
        matches!(space, Space::Generic | Space::Global | Space::Local)
    } else if form.flag("L2::evict_last") || form.flag("L2::evict_normal") {
        matches!(space, Space::Generic | Space::Global)
    } else {
        return Err(form.error("`prefetch` needs a level: `.L1`, `.L2`, `.L2::evict_last`, `.L2::evict_normal` or `.tensormap`"));
    };
    if !is_allowed {
        return Err(form.error(format!("this `prefetch` is not for {space} memory")));
    }
    Ok(Box::new(Advice { address: form.address(space)?, alignment: 1 }))
}

/// Decodes `prefetchu`.
pub(crate) fn decode_prefetch_uniform(form: &mut Form<'_>) -> Result<Box<dyn Instruction>, Unsupported> {
    if !form.flag("L1") {
        return Err(form.error("`prefetchu` is always `prefetchu.L1`"));
    }
    Ok(Box::new(Advice { address: form.address(Space::Generic)?, alignment: 1 }))
}

/// Decodes `discard` and `applypriority`, which operate on 128 bytes.
pub(crate) fn decode_line(form: &mut Form<'_>) -> Result<Box<dyn Instruction>, Unsupported> {
    let level = if form.opcode() == "discard" { "L2" } else { "L2::evict_normal" };
    let space = form.space();
    if !matches!(space, Space::Generic | Space::Global) {
        return Err(form.error(format!("`{}` is for global memory, not for {space} memory", form.opcode())));
    }
    if !form.flag(level) {
        return Err(form.error(format!("`{}` is always `.{level}`", form.opcode())));
    }
    let address = form.address(space)?;
    if form.immediate()? != 128 {
        return Err(form.error(format!("`{}` is for 128 bytes", form.opcode())));
    }
    Ok(Box::new(Advice { address, alignment: 128 }))
}

/// Decodes `createpolicy`.
pub(crate) fn decode_create_policy(form: &mut Form<'_>) -> Result<Box<dyn Instruction>, Unsupported> {
    const PRIMARY: [(&str, u64); 4] = [
        ("L2::evict_last", 0x14f0_0000_0000_0000),
        ("L2::evict_normal", 0x1000_0000_0000_0000),
        ("L2::evict_first", 0x12f0_0000_0000_0000),
        ("L2::evict_unchanged", 0x16f0_0000_0000_0000),
    ];
    let how = form.next_modifier();
    let mut bits = 0;
    let mut space = Space::Generic;
    if let Some("fractional" | "range") = how {
        space = form.space();
        let name = form.modifier_where(|modifier| modifier.starts_with("L2::"));
        let known = PRIMARY.iter().find(|(known, _)| Some(*known) == name);
        bits = known.ok_or_else(|| form.error("`createpolicy` needs a priority, such as `.L2::evict_last`"))?.1;
        match form.modifier_where(|modifier| modifier.starts_with("L2::")) {
            None | Some("L2::evict_first" | "L2::evict_unchanged") => {}
            Some(other) => {
                return Err(form.error(format!("the second priority is `.L2::evict_first` or `.L2::evict_unchanged`, not `.{other}`")));
            }
        }
    }
    if form.ty()? != Type::B64 {
        return Err(form.error("a cache policy is a `.b64`"));
    }
    let destination = form.destination(Type::B64)?;
    let kind = match how {
        Some("fractional") if space == Space::Generic => {
            let fraction = if form.operands_left() > 0 { Some(form.source(Type::F32)?) } else { None };
            if let Some(Value::Bits(bits)) = fraction {
                check_fraction(bits).map_err(|reason| form.error(reason))?;
            }
            Policy::Fractional(fraction)
        }
        Some("range") if matches!(space, Space::Generic | Space::Global) => {
            Policy::Range { address: form.address(space)?, primary_bytes: form.source(Type::B32)?, total_bytes: form.source(Type::B32)? }
        }
        Some("cvt") if form.flag("L2") => Policy::Convert(form.source(Type::B64)?),
        _ => return Err(form.error("`createpolicy` is `.fractional`, `.range` or `.cvt.L2`")),
    };
    Ok(Box::new(CreatePolicy { destination, bits, kind }))
}

fn check_fraction(bits: u64) -> Result<(), String> {
    let fraction = f32::from_bits(bits as u32);
    let is_fraction = fraction > 0.0 && fraction <= 1.0;
    if is_fraction { Ok(()) } else { Err(format!("a cache policy for the fraction {fraction}, which is not in (0, 1]")) }
}

impl Instruction for Advice {
    fn execute(&self, cx: &mut Cx<'_>) -> Result<Progress, Trap> {
        let addresses = cx.addresses(self.address)?;
        match cx.lanes.into_iter().find(|&lane| addresses[lane] % self.alignment != 0) {
            Some(lane) => {
                let space = self.address.space;
                Err(Trap::new(lane, FaultKind::Misaligned { space, address: addresses[lane], alignment: self.alignment as u32 }))
            }
            None => Ok(Progress::Done),
        }
    }

    fn class(&self) -> Class {
        Class::Memory
    }
}

impl Instruction for CreatePolicy {
    fn execute(&self, cx: &mut Cx<'_>) -> Result<Progress, Trap> {
        match self.kind {
            Policy::Fractional(None) => {}
            Policy::Fractional(Some(fraction)) => {
                let row = cx.read(fraction)?;
                for lane in cx.lanes {
                    check_fraction(row[lane]).map_err(|reason| cx.illegal(lane, reason))?;
                }
            }
            Policy::Range { address, primary_bytes, total_bytes } => {
                cx.addresses(address)?;
                let (primary, total) = (cx.read(primary_bytes)?, cx.read(total_bytes)?);
                if let Some(lane) = cx.lanes.into_iter().find(|&lane| primary[lane] > total[lane]) {
                    return Err(cx.illegal(lane, format!("a cache policy for the first {} of {} bytes", primary[lane], total[lane])));
                }
            }
            Policy::Convert(property) => {
                let row = cx.read(property)?;
                cx.write(self.destination, &row);
                return Ok(Progress::Done);
            }
        }
        cx.write(self.destination, &[self.bits; WARP]);
        Ok(Progress::Done)
    }

    fn class(&self) -> Class {
        Class::Memory
    }
}
