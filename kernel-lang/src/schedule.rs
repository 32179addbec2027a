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

    /// Threads per CTA.
    pub const fn threads(self) -> u32 {
        32 * self.num_warps
    }
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
