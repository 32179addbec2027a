//! What tuning found, as data.

/// How a file of records says what it is: the value of its first field, `format`.
pub(crate) const FORMAT: &str = "galatea tuning records 1";

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
    /// The values of the tuning key.
    pub values: Vec<u64>,
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
