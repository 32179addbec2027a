//! Occupancy: the CTAs that a multiprocessor holds at the same time, and the resource that limits them.
//!
//! The rules are those of NVIDIA's occupancy calculator. Registers are given to a warp in units, and warps lie in four parts of a
//! multiprocessor, each with a quarter of the registers.

use super::card::{Card, MOST_CTAS, MOST_WARPS, REGISTER_UNIT, REGISTERS, RESERVED_SHARED_BYTES, SCHEDULERS, SHARED_UNIT};

/// The resources of a CTA.
#[derive(Clone, Copy, Debug)]
pub(super) struct Needs {
    pub(super) warps: u64,
    /// Registers of a thread, if they are known.
    pub(super) registers: Option<u64>,
    pub(super) shared_bytes: u64,
}

/// The CTAs that a multiprocessor holds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Occupancy {
    pub(super) ctas: u64,
    pub(super) warps: u64,
    /// The resources that limit the CTAs, by name.
    pub(super) limits: Vec<&'static str>,
}

impl Occupancy {
    pub(super) fn of(card: &Card, needs: &Needs) -> Occupancy {
        let mut by = vec![("CTAs", MOST_CTAS), ("warps", MOST_WARPS / needs.warps)];
        if needs.shared_bytes > 0 {
            let taken = (needs.shared_bytes + RESERVED_SHARED_BYTES).next_multiple_of(SHARED_UNIT);
            by.push(("shared memory", card.shared_bytes / taken));
        }
        by.extend(needs.registers.map(|registers| ("registers", by_registers(registers, needs.warps))));
        let ctas = by.iter().map(|(_, ctas)| *ctas).min().unwrap_or(0);
        let limits = by.iter().filter(|(_, most)| *most == ctas).map(|(name, _)| *name).collect();
        Occupancy { ctas, warps: ctas * needs.warps, limits }
    }
}

/// The CTAs for which a multiprocessor has registers.
fn by_registers(registers: u64, warps: u64) -> u64 {
    let of_warp = (32 * registers.max(1)).next_multiple_of(REGISTER_UNIT);
    SCHEDULERS * (REGISTERS / SCHEDULERS / of_warp) / warps
}

/// The most registers of a thread with which a multiprocessor still holds so many CTAs.
pub(super) fn most_registers(ctas: u64, warps: u64) -> u64 {
    (1..=255).rev().find(|registers| by_registers(*registers, warps) >= ctas).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::super::card::Model;
    use super::*;

    /// Figures of NVIDIA's occupancy calculator.
    #[test]
    fn limits_are_those_of_the_calculator() {
        let of = |warps, registers: u64, shared_bytes| {
            let occupancy = Occupancy::of(&Model::H200.card(), &Needs { warps, registers: Some(registers), shared_bytes });
            (occupancy.ctas, occupancy.warps, occupancy.limits.join(", "))
        };
        assert_eq!(of(4, 32, 0), (16, 64, "warps, registers".to_owned()));
        assert_eq!(of(4, 33, 0), (12, 48, "registers".to_owned()));
        assert_eq!(of(4, 128, 0), (4, 16, "registers".to_owned()));
        assert_eq!(of(8, 255, 0), (1, 8, "registers".to_owned()));
        assert_eq!(of(1, 24, 0), (32, 32, "CTAs".to_owned()));
        assert_eq!(of(4, 16, 32 << 10), (6, 24, "shared memory".to_owned()));
        assert_eq!(of(8, 64, 112 << 10), (2, 16, "shared memory".to_owned()));
    }

    #[test]
    fn unknown_registers_do_not_limit() {
        let needs = Needs { warps: 4, registers: None, shared_bytes: 0 };
        assert_eq!(Occupancy::of(&Model::A100.card(), &needs).limits, ["warps"]);
        assert_eq!((most_registers(16, 4), most_registers(4, 4), most_registers(1, 4)), (32, 128, 255));
    }
}
