//! Occupancy: the CTAs that a multiprocessor holds at the same time, and the resource that limits them.

use std::path::Path;

use kernel_lang::occupancy::{Cta, Multiprocessor, Needs, limited};
use kernel_runtime::assembler::Usage;

use crate::ptxas;

/// The CTAs that a multiprocessor holds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Occupancy {
    pub(super) ctas: u32,
    pub(super) warps: u32,
    /// The resources that limit the CTAs, by name.
    pub(super) limits: Vec<&'static str>,
}

impl Occupancy {
    /// Registers that are not known limit nothing.
    pub(super) fn of(multiprocessor: Multiprocessor, cta: Cta, registers: Option<u32>) -> Occupancy {
        let by = multiprocessor.limits(cta, registers);
        let ctas = by.iter().map(|(_, ctas)| *ctas).min().unwrap_or(0);
        let limits = by.iter().filter(|(_, most)| *most == ctas).map(|(name, _)| *name).collect();
        Occupancy { ctas, warps: ctas * cta.warps, limits }
    }
}

/// The most registers of a thread with which a multiprocessor still holds so many CTAs.
pub(super) fn most_registers(multiprocessor: Multiprocessor, cta: Cta, ctas: u32) -> u32 {
    (1..=255).rev().find(|registers| Occupancy::of(multiprocessor, cta, Some(*registers)).ctas >= ctas).unwrap_or(0)
}

/// What a kernel takes when the runtime loads it: fewer registers, where more CTAs then run at the same time.
pub(super) fn usage(ptxas: &Path, ptx: &str, target: &str, multiprocessor: Multiprocessor, cta: Cta) -> Result<Usage, String> {
    let with_needs = |usage: Usage| {
        let needs = Needs { registers: usage.registers, local_bytes: usage.local_bytes };
        (usage, needs)
    };
    let assemble = |ptx: &str| ptxas::usage(ptxas, ptx, target).map(with_needs);
    Ok(multiprocessor.most_ctas(cta, assemble(ptx)?, |registers| assemble(&limited(ptx, registers)?).ok()))
}

#[cfg(test)]
mod tests {
    use super::super::card::Model;
    use super::*;

    #[test]
    fn the_scarcest_resource_limits() {
        let of = |warps, registers, shared_bytes| {
            let occupancy = Occupancy::of(Model::H200.card().multiprocessor, Cta { warps, shared_bytes }, registers);
            (occupancy.ctas, occupancy.warps, occupancy.limits.join(", "))
        };
        assert_eq!(of(4, Some(32), 0), (16, 64, "warps, registers".to_owned()));
        assert_eq!(of(4, Some(33), 0), (12, 48, "registers".to_owned()));
        assert_eq!(of(1, Some(24), 0), (32, 32, "CTAs".to_owned()));
        assert_eq!(of(4, Some(16), 32 << 10), (6, 24, "shared memory".to_owned()));
        assert_eq!(of(4, None, 0), (16, 64, "warps".to_owned()));
    }

    #[test]
    fn registers_are_free_up_to_the_next_step() {
        let of = |ctas| most_registers(Model::A100.card().multiprocessor, Cta { warps: 4, shared_bytes: 0 }, ctas);
        assert_eq!([of(16), of(4), of(1)], [32, 128, 255]);
    }
}
