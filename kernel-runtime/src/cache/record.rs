//! The data types of tuning records.

/// The value of the field `format` in a file of records.
pub(crate) const FORMAT: &str = "galatea tuning records 2";
/// The previous format. Its records have no number of programs and apply to any number.
pub(crate) const FORMAT_WITHOUT_PROGRAMS: &str = "galatea tuning records 1";

/// The result of tuning one key of a kernel.
#[derive(Clone, PartialEq, Debug)]
pub struct Record {
    /// The key of the record.
    pub of: RecordKey,
    /// One attempt for each configuration, in their order.
    pub attempts: Vec<Attempt>,
    /// The index of the chosen configuration in `attempts`.
    pub chosen: usize,
}

/// The key of a record: everything that determines which configuration is fastest.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RecordKey {
    /// The name of the kernel.
    pub kernel: String,
    /// A hash of the PTX (or the source), the configurations, the arguments of the tuning key, and the kind of comparison of results.
    pub content: String,
    /// The vendor's name of the GPU.
    pub device: String,
    /// The driver and its version.
    pub driver: String,
    /// The class of the number of programs; none in records of the first format, which apply to any number.
    pub programs: Option<Programs>,
    /// The values of the tuning key.
    pub values: Vec<u64>,
}

/// A class of the number of programs of a launch. Launches of different classes have different tuning keys.
///
/// A *wave* is the number of warps that the GPU runs at once if only the number of threads limits it: 64 warps for each multiprocessor. The
/// warps of a launch are those of all its programs, with the grid and the schedule of the first configuration that `prune` leaves. So the
/// class is known before a configuration is chosen.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Programs {
    /// At most one wave: a launch takes as long as its slowest program.
    UpToOneWave,
    /// More than one and at most eight waves: the fill level of the last wave matters.
    FewWaves,
    /// More than eight waves: the GPU is full nearly all the time.
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

    /// Parses the output of `Display`.
    #[cfg(feature = "cache")]
    pub(super) fn parse(name: &str) -> Option<Programs> {
        Programs::ALL.into_iter().find(|programs| programs.name() == name)
    }
}

/// Formats as `up to one wave`, `a few waves` or `many waves`, as in records.
impl std::fmt::Display for Programs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}

/// The result of one configuration.
#[derive(Clone, PartialEq, Debug)]
pub struct Attempt {
    /// The text of the configuration.
    pub config: String,
    /// The median time in microseconds and the number of samples; none if the configuration was not timed.
    pub timed: Option<(f64, usize)>,
    /// The reason why it did not run, if it failed.
    pub failed: Option<String>,
}

impl Record {
    /// The attempt of the chosen configuration.
    pub fn chosen(&self) -> &Attempt {
        &self.attempts[self.chosen]
    }
}
