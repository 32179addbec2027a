//! `mapa` and `getctarank`: addresses in the shared memory of other CTAs of the cluster (PTX ISA, "Data Movement and Conversion
//! Instructions: mapa, getctarank").

use super::{Form, Instruction, Progress, Register, Unsupported, Value, async_access};
use crate::counters::Class;
use crate::fault::Trap;
use crate::lanes::WARP;
use crate::machine::Cx;
use crate::ptx::Type;

struct Map {
    destination: Option<Register>,
    address: Value,
    rank: Value,
    is_shared: bool,
}

/// Decodes `mapa`.
pub(super) fn decode_map(form: &mut Form<'_>) -> Result<Box<dyn Instruction>, Unsupported> {
    let is_shared = form.flag("shared::cluster");
    let ty = address_type(form)?;
    Ok(Box::new(Map { destination: form.destination(ty)?, address: form.source(ty)?, rank: form.source(Type::U32)?, is_shared }))
}

impl Instruction for Map {
    fn execute(&self, cx: &mut Cx<'_>) -> Result<Progress, Trap> {
        let addresses = cx.read(self.address)?;
        let ranks = cx.read(self.rank)?;
        let mut mapped = [0; WARP];
        for lane in cx.lanes {
            let shared = shared(cx, lane, addresses[lane], self.is_shared)?;
            let rank = ranks[lane] as usize;
            let ctas = cx.cluster.ctas.len();
            if rank >= ctas {
                return Err(cx.illegal(lane, format!("there is no CTA {rank} in a cluster of {ctas}")));
            }
            let remote = async_access::remote_address(rank, shared);
            mapped[lane] = if self.is_shared { remote } else { async_access::generic_of_shared(remote) };
        }
        cx.write(self.destination, &mapped);
        Ok(Progress::Done)
    }

    fn class(&self) -> Class {
        Class::Integer
    }
}

struct Rank {
    destination: Option<Register>,
    address: Value,
    is_shared: bool,
}

/// Decodes `getctarank`.
pub(super) fn decode_rank(form: &mut Form<'_>) -> Result<Box<dyn Instruction>, Unsupported> {
    let is_shared = form.flag("shared::cluster");
    let ty = address_type(form)?;
    Ok(Box::new(Rank { destination: form.destination(Type::U32)?, address: form.source(ty)?, is_shared }))
}

impl Instruction for Rank {
    fn execute(&self, cx: &mut Cx<'_>) -> Result<Progress, Trap> {
        let addresses = cx.read(self.address)?;
        let mut ranks = [0; WARP];
        for lane in cx.lanes {
            let shared = shared(cx, lane, addresses[lane], self.is_shared)?;
            ranks[lane] = async_access::rank_of(shared).unwrap_or(cx.rank as u64);
        }
        cx.write(self.destination, &ranks);
        Ok(Progress::Done)
    }

    fn class(&self) -> Class {
        Class::Integer
    }
}

fn address_type(form: &mut Form<'_>) -> Result<Type, Unsupported> {
    match form.ty()? {
        ty @ (Type::U32 | Type::U64) => Ok(ty),
        ty => Err(form.error(format!("an address is of type `.u32` or `.u64`, not `{ty}`"))),
    }
}

/// The shared address of a lane's operand.
fn shared(cx: &Cx<'_>, lane: usize, address: u64, is_shared: bool) -> Result<u64, Trap> {
    if is_shared {
        return Ok(address);
    }
    async_access::shared_of_generic(address)
        .ok_or_else(|| cx.illegal(lane, format!("the generic address {address:#x} is not in shared memory")))
}
