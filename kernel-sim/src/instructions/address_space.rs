//! `cvta` and `isspacep`: conversions between generic addresses and addresses of a state space (PTX ISA, 9.7.9.19 and 9.7.9.20).
//!
//! Global and constant addresses equal their generic addresses. The other spaces have windows in the generic address space:
//!
//! | space | generic address |
//! |---|---|
//! | shared | `0x1_0000_0000 +` offset; from bit 24 on, the offset has the number of a CTA of the cluster, or 0 for the thread's own CTA |
//! | local | `0x2_0000_0000 +` offset |
//! | kernel parameters | `0x3_0000_0000 +` offset |

use crate::counters::Class;
use crate::fault::Trap;
use crate::instructions::lanewise::{Decoded, lanewise, type_of};
use crate::instructions::{Form, Instruction, Progress, Register, Unsupported, Value};
use crate::machine::{Cx, window};
use crate::ptx::{Space, Type};

/// The start of a space's window in the generic address space.
fn start(form: &Form<'_>, space: Space) -> Result<u64, Unsupported> {
    match space {
        Space::Global | Space::Const => Ok(0),
        Space::Shared | Space::SharedCluster => Ok(window::SHARED.start),
        Space::Local => Ok(window::LOCAL.start),
        Space::Param => Ok(window::PARAM.start),
        Space::Generic => Err(form.error(format!("`{}` needs a state space", form.opcode()))),
    }
}

/// `cvta.space`, `cvta.to.space`
pub(super) fn cvta(form: &mut Form<'_>) -> Decoded {
    let to_space = form.flag("to");
    let space = form.space();
    let start = start(form, space)?;
    // Generic addresses have 64 bits here, so `.u32` is unsupported.
    let ty = type_of(form, &[Type::U64])?;
    let destination = form.destination(ty)?;
    let source = form.source(ty)?;
    if to_space {
        lanewise(Class::Integer, destination, [source], move |[a]| a.wrapping_sub(start))
    } else {
        lanewise(Class::Integer, destination, [source], move |[a]| a.wrapping_add(start))
    }
}

/// `isspacep.space`
pub(super) fn isspacep(form: &mut Form<'_>) -> Decoded {
    let space = form.space();
    start(form, space)?;
    if space == Space::Const {
        return Err(form.error("the simulator keeps constants in global memory, and does not know `isspacep.const`"));
    }
    let destination = form.destination(Type::Pred)?;
    let source = form.source(Type::B64)?;
    Ok(Box::new(IsSpace { space, destination, source }))
}

struct IsSpace {
    space: Space,
    destination: Option<Register>,
    source: Value,
}

impl Instruction for IsSpace {
    fn execute(&self, cx: &mut Cx<'_>) -> Result<Progress, Trap> {
        let own = cx.rank as u64 + 1;
        let row = cx.read(self.source)?.map(|address| u64::from(is_in(self.space, address, own)));
        cx.write(self.destination, &row);
        Ok(Progress::Done)
    }

    fn class(&self) -> Class {
        Class::Integer
    }
}

/// Whether a generic address belongs to a space. `own` is the number of the thread's own CTA in an address.
fn is_in(space: Space, address: u64, own: u64) -> bool {
    let is_shared = window::SHARED.contains(&address);
    match space {
        Space::SharedCluster => is_shared,
        Space::Shared => {
            let cta = (address - if is_shared { window::SHARED.start } else { 0 }) >> 24;
            is_shared && (cta == 0 || cta == own)
        }
        Space::Local => window::LOCAL.contains(&address),
        Space::Param => window::PARAM.contains(&address),
        _ => !(window::SHARED.start..window::PARAM.end).contains(&address),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::instructions::harness::{refusal, with_registers};

    #[test]
    fn there_and_back() {
        let mut harness = with_registers();
        harness.variable("tile", Space::Shared, 0x40);
        for (space, generic) in
            [("shared", 0x1_0000_0040), ("local", 0x2_0000_0040), ("param", 0x3_0000_0040), ("global", 0x40), ("const", 0x40)]
        {
            harness.define("%d1", Type::B64, |_| 0x40);
            harness.run(&format!("cvta.{space}.u64 %d2, %d1;")).unwrap();
            assert_eq!(harness.value("%d2")[0], generic);
            harness.run(&format!("cvta.to.{space}.u64 %d3, %d2;")).unwrap();
            assert_eq!(harness.value("%d3")[0], 0x40);
        }
        harness.run("cvta.shared.u64 %d0, tile+4;").unwrap();
        assert_eq!(harness.value("%d0")[31], 0x1_0000_0044);
    }

    #[test]
    fn spaces_of_generic_addresses() {
        for (address, spaces) in [
            (0x10_0000_0000, &["global"][..]),
            (0x1_0000_0010, &["shared", "shared::cta", "shared::cluster"]),
            (0x1_0100_0010, &["shared", "shared::cta", "shared::cluster"]),
            (0x1_0200_0010, &["shared::cluster"]),
            (0x2_0000_0010, &["local"]),
            (0x3_0000_0010, &["param"]),
        ] {
            let mut harness = with_registers();
            harness.define("%d1", Type::B64, |_| address);
            for space in ["global", "shared", "shared::cta", "shared::cluster", "local", "param"] {
                harness.run(&format!("isspacep.{space} %p0, %d1;")).unwrap();
                assert_eq!(harness.value("%p0")[0] == 1, spaces.contains(&space), "{address:#x} {space}");
            }
        }
    }

    #[test]
    fn forms_that_ptx_lacks_are_refused() {
        for text in ["cvta.u64 %d0, %d1;", "cvta.to.global.u32 %r0, %r1;", "isspacep %p0, %d1;", "isspacep.global %p0, %h1;"] {
            assert!(refusal(text).is_some(), "{text}");
        }
    }
}
