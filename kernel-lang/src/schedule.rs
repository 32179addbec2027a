//! How a program's work is spread over threads and time.

/// What changes how fast a kernel runs, and never what it computes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Schedule {
    /// Warps of a CTA: a power of two up to 32.
    pub num_warps: u32,
    /// CTAs that share a program, a cluster: a power of two up to 16; more than one on GPUs that have clusters.
    pub num_ctas: u32,
    /// How many turns of a loop are under way at once, at most, where the loop does not say it itself: see [`crate::passes::prefetch_loads`].
    pub num_stages: u32,
    /// The most registers that the assembler may give a thread, if it is told.
    pub maxnreg: Option<u32>,
}

impl Schedule {
    /// Where nobody says otherwise; warps and stages as in Triton.
    pub const DEFAULT: Schedule = Schedule { num_warps: 4, num_ctas: 1, num_stages: 3, maxnreg: None };

    /// The most CTAs of a cluster, on every GPU so far; more than 8 must be asked for at launch.
    pub const MOST_CTAS: u32 = 16;
    /// Registers that a thread can have at most.
    pub const MOST_REGISTERS: u32 = 255;

    /// Threads of a CTA.
    pub const fn threads(self) -> u32 {
        32 * self.num_warps
    }
}

impl Default for Schedule {
    fn default() -> Schedule {
        Schedule::DEFAULT
    }
}

/// A part of a file's name: `w8`, and what differs from the default, as in `w8-c4-s2-r64`.
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
