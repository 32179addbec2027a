//! Occupancy: how many CTAs a multiprocessor holds at the same time, and fewer registers where it then holds more.
//!
//! The rules are those of NVIDIA's occupancy calculator. Registers are given to a warp in units, and warps lie in four parts of a multiprocessor, each with a
//! quarter of the registers.
//!
//! The assembler gives a thread as many registers as its order of instructions takes, and does not know how many threads fit a multiprocessor. Of CTAs of 4
//! warps, a multiprocessor with 65,536 registers holds
//!
//! | registers of a thread | 32 or less | 40 | 48 | 56 | 64 |
//! |---|---:|---:|---:|---:|---:|
//! | CTAs | 16 | 12 | 10 | 9 | 8 |
//!
//! so a kernel of 44 registers has as few CTAs as one of 48. If a few registers less make room for another CTA, the kernel is assembled again with that limit,
//! and this code is kept if it needs no more local memory: then the assembler found another order of instructions, and spilled nothing.

/// The registers that a limit saves at most. A limit that saves more makes the assembler spill, or wait for each load.
const MOST_SAVED: u32 = 8;
/// Registers are given to a warp in units of so many.
const REGISTER_UNIT: u32 = 256;
/// The warps of a multiprocessor lie in so many parts, each with its share of the registers.
const PARTS: u32 = 4;
/// Bytes of shared memory that the system takes for each CTA.
const RESERVED_SHARED_BYTES: u32 = 1024;
/// Shared memory is given to a CTA in units of so many bytes.
const SHARED_UNIT: u32 = 128;

/// What the assembler needed for a function.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Needs {
    /// The registers of a thread.
    pub registers: u32,
    /// The local memory of a thread, in bytes.
    pub local_bytes: u32,
}

/// What a CTA takes, besides registers.
#[derive(Clone, Copy, Debug)]
pub struct Cta {
    /// The warps.
    pub warps: u32,
    /// The shared memory, in bytes.
    pub shared_bytes: u32,
}

/// What a multiprocessor has for its CTAs.
#[derive(Clone, Copy, Debug)]
pub struct Multiprocessor {
    /// The most CTAs.
    pub ctas: u32,
    /// The most warps.
    pub warps: u32,
    /// The registers.
    pub registers: u32,
    /// The shared memory, in bytes.
    pub shared_bytes: u32,
}

impl Multiprocessor {
    /// Those of devices of that compute capability, if they are known (CUDA C++ Programming Guide, Technical Specifications per Compute Capability).
    pub const fn of(capability: (u32, u32)) -> Option<Multiprocessor> {
        let (ctas, warps, shared_kib) = match capability {
            (8, 0) => (32, 64, 164),
            (8, 6) => (16, 48, 100),
            (8, 7) => (16, 48, 164),
            (8, 9) | (12, 0) => (24, 48, 100),
            (9, 0) | (10, 0) => (32, 64, 228),
            _ => return None,
        };
        Some(Multiprocessor { ctas, warps, registers: 64 << 10, shared_bytes: shared_kib << 10 })
    }

    /// The CTAs that each resource allows, by its name. Registers that are not known allow any number.
    pub fn limits(self, cta: Cta, registers: Option<u32>) -> [(&'static str, u32); 4] {
        let warps = cta.warps.max(1);
        let of_warp = |registers: u32| (32 * registers.max(1)).next_multiple_of(REGISTER_UNIT);
        let by_registers = registers.map_or(u32::MAX, |registers| PARTS * (self.registers / PARTS / of_warp(registers)) / warps);
        let by_shared = match cta.shared_bytes {
            0 => u32::MAX,
            bytes => self.shared_bytes / bytes.saturating_add(RESERVED_SHARED_BYTES).next_multiple_of(SHARED_UNIT),
        };
        [("CTAs", self.ctas), ("warps", self.warps / warps), ("shared memory", by_shared), ("registers", by_registers)]
    }

    /// The CTAs that it holds if a thread has so many registers.
    fn holds(self, cta: Cta, registers: u32) -> u32 {
        self.limits(cta, Some(registers)).into_iter().map(|(_, ctas)| ctas).min().unwrap_or(0)
    }

    /// The largest limit of registers with which another CTA fits, if it saves few registers.
    fn limit(self, cta: Cta, registers: u32) -> Option<u32> {
        let now = self.holds(cta, registers);
        (1..=MOST_SAVED.min(registers.saturating_sub(1))).map(|saved| registers - saved).find(|limit| self.holds(cta, *limit) > now)
    }

    /// The code of which it holds the most CTAs: `first`, or what `assemble` makes with a limit of registers.
    pub fn most_ctas<T>(self, cta: Cta, first: (T, Needs), mut assemble: impl FnMut(u32) -> Option<(T, Needs)>) -> T {
        let (mut code, mut needs) = first;
        while let Some(limit) = self.limit(cta, needs.registers) {
            match assemble(limit) {
                Some((limited, less)) if less.registers <= limit && less.local_bytes <= needs.local_bytes => {
                    (code, needs) = (limited, less)
                }
                _ => break,
            }
        }
        code
    }
}

/// The PTX of a kernel with a limit of registers for its first entry, the usual one. `None` if that states one itself.
pub fn limited(ptx: &str, registers: u32) -> Option<String> {
    let at = ptx.find("\n.reqntid ")? + 1;
    let end = at + ptx[at..].find('\n')? + 1;
    let (directives, _) = ptx[at..].split_once("\n{")?;
    (!directives.contains("\n.maxnreg ")).then(|| format!("{}.maxnreg {registers}\n{}", &ptx[..end], &ptx[end..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOPPER: Multiprocessor = Multiprocessor::of((9, 0)).unwrap();
    const CTA: Cta = Cta { warps: 4, shared_bytes: 0 };

    /// Figures of NVIDIA's occupancy calculator.
    #[test]
    fn limits_are_those_of_the_calculator() {
        let of = |warps, registers, shared_bytes| HOPPER.holds(Cta { warps, shared_bytes }, registers);
        assert_eq!([of(4, 32, 0), of(4, 33, 0), of(4, 128, 0), of(8, 255, 0), of(1, 24, 0)], [16, 12, 4, 1, 32]);
        assert_eq!([of(4, 16, 32 << 10), of(8, 64, 112 << 10)], [6, 2]);
    }

    #[test]
    fn a_limit_makes_room_for_another_cta() {
        let of = |warps, registers| HOPPER.limit(Cta { warps, ..CTA }, registers);
        assert_eq!([of(4, 44), of(4, 48), of(4, 56), of(4, 40)], [Some(40), Some(40), Some(48), Some(32)]);
        assert_eq!([of(8, 56), of(8, 64), of(8, 65)], [Some(48), None, Some(64)]);
        assert_eq!([of(4, 32), of(4, 20), of(4, 96), of(1, 60)], [None; 4], "all CTAs fit, or the limit saves too much");
        assert_eq!(HOPPER.limit(Cta { shared_bytes: 40 << 10, ..CTA }, 44), None, "shared memory is the limit");
    }

    /// An assembler that needs at least so many registers, and spills what is missing.
    fn assembled(least: u32, limits: &mut Vec<u32>) -> u32 {
        let needs = |limit: u32| Needs { registers: limit, local_bytes: 4 * least.saturating_sub(limit) };
        HOPPER.most_ctas(CTA, (47, needs(47)), |limit| {
            limits.push(limit);
            Some((limit, needs(limit)))
        })
    }

    #[test]
    fn the_code_with_the_most_ctas_that_spills_nothing_is_kept() {
        let mut limits = Vec::new();
        assert_eq!((assembled(40, &mut limits), limits), (40, vec![40, 32]));
        let mut limits = Vec::new();
        assert_eq!((assembled(30, &mut limits), limits), (32, vec![40, 32]));
        let mut limits = Vec::new();
        assert_eq!((assembled(44, &mut limits), limits), (47, vec![40]));
        assert_eq!(HOPPER.most_ctas(CTA, ("first", Needs { registers: 44, local_bytes: 0 }), |_| None), "first");
    }

    #[test]
    fn a_limit_stands_behind_the_number_of_threads() {
        let text = ".visible .entry f(\n)\n.reqntid 128, 1, 1\n{\n}\n";
        let with = limited(text, 40).unwrap();
        assert_eq!(with, ".visible .entry f(\n)\n.reqntid 128, 1, 1\n.maxnreg 40\n{\n}\n");
        assert_eq!((limited(&with, 32), limited("nothing", 32)), (None, None));
        // A second entry states its own.
        let second = ".visible .entry g(\n)\n.reqntid 384, 1, 1\n.maxnreg 168\n{\n}\n";
        assert_eq!(limited(&format!("{text}{second}"), 40), Some(format!("{with}{second}")));
    }
}
