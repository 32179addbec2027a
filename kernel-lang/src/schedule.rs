//! The schedule: how a program's work is spread over threads and time.

/// Parameters that change a kernel's speed, and never its results.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Schedule {
    /// Warps per CTA: a power of two up to 32.
    pub num_warps: u32,
    /// CTAs per program (the cluster size): a power of two up to 16. Only GPUs with clusters allow more than one.
    pub num_ctas: u32,
    /// Maximum number of loop iterations in flight, for loops that do not state it themselves: see [`crate::passes::prefetch_loads`].
    pub num_stages: u32,
    /// Maximum number of registers that the assembler may give a thread; `None` leaves the choice to the assembler.
    pub maxnreg: Option<u32>,
}

impl Schedule {
    /// The default schedule; warps as in Triton. A loop has as many stages as its loads need, up to 8 ([`crate::passes::prefetch_loads`]): where the grid fills a
    /// multiprocessor with few warps, the bandwidth of memory needs many bytes of each thread on their way.
    pub const DEFAULT: Schedule = Schedule { num_warps: 4, num_ctas: 1, num_stages: 8, maxnreg: None };

    /// Maximum number of CTAs per cluster, on every GPU so far. Sizes above 8 need an opt-in at launch.
    pub const MOST_CTAS: u32 = 16;
    /// Maximum number of registers per thread.
    pub const MOST_REGISTERS: u32 = 255;

    /// Threads per CTA, without those of a producer.
    pub const fn threads(self) -> u32 {
        32 * self.num_warps
    }
}

/// How a CTA with a producer and consumers uses a multiprocessor.
impl Schedule {
    /// The threads of the producer: a warpgroup, because registers move between warpgroups.
    pub const PRODUCER_THREADS: u32 = 128;
    /// The registers of a thread of the producer.
    const PRODUCER_REGISTERS: u32 = 40;
    /// The registers of a multiprocessor, for each thread of one warpgroup.
    const WARPGROUP_REGISTERS: u32 = 512;
    /// The most accumulators of a thread of which two CTAs fit.
    const FEW_ACCUMULATORS: u32 = 64;

    /// The CTAs that a multiprocessor runs at the same time: two, where one has few accumulators, so that one multiplies while the other one stores.
    pub const fn workers(self, accumulators: u32) -> u32 {
        if self.num_warps <= 4 && accumulators <= Self::FEW_ACCUMULATORS * self.threads() { 2 } else { 1 }
    }

    /// The registers of a thread, with so many CTAs on a multiprocessor.
    pub fn role_registers(self, workers: u32) -> RoleRegisters {
        let most = Self::WARPGROUP_REGISTERS / workers;
        // Registers are given in units of eight.
        let units = |registers: u32| registers.min(Schedule::MOST_REGISTERS) / 8 * 8;
        let consumers = self.num_warps.div_ceil(4);
        let consumer = units((most - Self::PRODUCER_REGISTERS) / consumers);
        // One consumer and the producer have as many as an instruction can name.
        let of_roles = (consumers > 1).then_some([Self::PRODUCER_REGISTERS, consumer]);
        RoleRegisters { at_first: units(most / (consumers + 1)), of_roles }
    }
}

/// The registers of a thread in a CTA with a producer and consumers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RoleRegisters {
    /// When the kernel begins.
    pub at_first: u32,
    /// Of the producer and of the consumers, if registers move between them.
    pub of_roles: Option<[u32; 2]>,
}

impl Default for Schedule {
    fn default() -> Schedule {
        Schedule::DEFAULT
    }
}

/// Part of a file name: `w8`, followed by the fields that differ from the default, as in `w8-c4-s2-r64`.
impl std::fmt::Display for Schedule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Schedule { num_warps, num_ctas, num_stages, maxnreg } = *self;
        write!(f, "w{num_warps}")?;
        if num_ctas != Schedule::DEFAULT.num_ctas {
            write!(f, "-c{num_ctas}")?;
        }
        if num_stages != Schedule::DEFAULT.num_stages {
            write!(f, "-s{num_stages}")?;
        }
        maxnreg.map_or(Ok(()), |registers| write!(f, "-r{registers}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_registers_of_roles_fit_a_multiprocessor() {
        const REGISTERS: u32 = 1 << 16;
        for (num_warps, workers, expected) in [
            (4, 1, RoleRegisters { at_first: 248, of_roles: None }),
            (4, 2, RoleRegisters { at_first: 128, of_roles: None }),
            (8, 1, RoleRegisters { at_first: 168, of_roles: Some([40, 232]) }),
        ] {
            let schedule = Schedule { num_warps, ..Schedule::DEFAULT };
            let registers = schedule.role_registers(workers);
            assert_eq!(registers, expected, "{num_warps} warps, {workers} workers");
            let of_all = registers.at_first * (schedule.threads() + Schedule::PRODUCER_THREADS);
            assert!(of_all * workers <= REGISTERS);
            // Registers only move between the threads of a CTA.
            if let Some([producer, consumer]) = registers.of_roles {
                assert!(producer * Schedule::PRODUCER_THREADS + consumer * schedule.threads() <= of_all);
                assert!(producer < registers.at_first && registers.at_first < consumer);
            }
        }
    }

    #[test]
    fn two_workers_have_few_accumulators_each() {
        let schedule = |num_warps| Schedule { num_warps, ..Schedule::DEFAULT };
        assert_eq!([64 * 64, 64 * 128, 128 * 64, 128 * 128].map(|elements| schedule(4).workers(elements)), [2, 2, 2, 1]);
        assert_eq!(schedule(8).workers(128 * 64), 1);
    }
}
