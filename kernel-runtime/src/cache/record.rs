//! What tuning found, as data.

/// How a file of records says what it is: the value of its first field, `format`.
pub(crate) const FORMAT: &str = "galatea tuning records 2";
/// The format before: its records do not say for how many programs they are, and are read as records for any number.
pub(crate) const FORMAT_WITHOUT_PROGRAMS: &str = "galatea tuning records 1";

/// What tuning one key of a kernel tried and chose.
#[derive(Clone, PartialEq, Debug)]
pub struct Record {
    /// Of what it is.
    pub of: RecordKey,
    /// One for each configuration, in their order.
    pub attempts: Vec<Attempt>,
    /// The place of the chosen configuration among them.
    pub chosen: usize,
}

/// What a record is of: everything that decides which configuration is fastest.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RecordKey {
    /// The name of the kernel.
    pub kernel: String,
    /// A hash of what runs, and of what is asked: of the PTX, or of its source, the configurations, what the key names, and how results are compared.
    pub content: String,
    /// The maker's name of the GPU.
    pub device: String,
    /// The driver and its version.
    pub driver: String,
    /// How many programs the launches run; none in records of the first format, which serve launches of any number.
    pub programs: Option<Programs>,
    /// The values of the tuning key.
    pub values: Vec<u64>,
}

/// How many programs a launch runs, as far as a tuning key tells them apart.
///
/// A *wave* is what the GPU runs at once where nothing but the number of threads limits it: 64 warps for each multiprocessor. The warps are those of all
/// programs, with the grid and the schedule of the first configuration that `prune` leaves, so that the class is known before one is chosen.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Programs {
    /// One wave, or less: a launch takes as long as its slowest program.
    UpToOneWave,
    /// Up to eight waves: how full the last one is matters.
    FewWaves,
    /// More: the GPU is full nearly all the time.
    ManyWaves,
}

impl Programs {
    /// All classes.
    pub const ALL: [Programs; 3] = [Programs::UpToOneWave, Programs::FewWaves, Programs::ManyWaves];

    fn name(self) -> &'static str {
        match self {
            Programs::UpToOneWave => "up to one wave",
            Programs::FewWaves => "a few waves",
            Programs::ManyWaves => "many waves",
        }
    }

    /// What `Display` writes, read.
    #[cfg(feature = "cache")]
    pub(super) fn parse(name: &str) -> Option<Programs> {
        Programs::ALL.into_iter().find(|programs| programs.name() == name)
    }
}

/// `up to one wave`, `a few waves` or `many waves`: as records have it.
impl std::fmt::Display for Programs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}

/// What became of one configuration.
#[derive(Clone, PartialEq, Debug)]
pub struct Attempt {
    /// The configuration as it is written.
    pub config: String,
    /// The median of its times in microseconds, and how many there are; none if it was not timed.
    pub timed: Option<(f64, usize)>,
    /// Why it did not run.
    pub failed: Option<String>,
}

impl Record {
    /// What was tried of the chosen configuration.
    pub fn chosen(&self) -> &Attempt {
        &self.attempts[self.chosen]
    }
}
