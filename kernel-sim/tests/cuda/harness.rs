//! Loads the PTX beside it, and runs its kernels on values of Rust.

use std::fs;

use kernel_sim::{Counters, Fault, Gpu, Kernel, Launch, LaunchError, Machine, Module, Options};

/// Schedules that every correct kernel is run under.
pub(crate) const SEEDS: std::ops::Range<u64> = 0..9;

/// A value that a kernel's memory or parameters hold.
pub(crate) trait Plain: Copy {
    /// Its bytes, as the GPU has them.
    fn bytes(self) -> Vec<u8>;
    /// The value of these bytes.
    fn of(bytes: &[u8]) -> Self;
}

macro_rules! plain {
    ($($ty:ty)*) => {$(
        impl Plain for $ty {
            fn bytes(self) -> Vec<u8> {
                self.to_le_bytes().to_vec()
            }
            fn of(bytes: &[u8]) -> Self {
                <$ty>::from_le_bytes(bytes.try_into().unwrap())
            }
        }
    )*};
}
plain!(u8 i8 u16 i16 i32 u32 f32 i64 u64 f64 half::f16 half::bf16);

/// The bytes of each parameter.
macro_rules! params {
    ($($value:expr),*) => { vec![$($crate::harness::Plain::bytes($value)),*] };
}
pub(crate) use params;

/// A GPU with one of the files loaded.
pub(crate) struct Cuda {
    machine: Machine,
    module: Module,
    /// Dynamic shared memory of a CTA.
    pub(crate) shared_bytes: u32,
    /// The schedule.
    pub(crate) seed: u64,
}

/// Loads `<name>.ptx`.
pub(crate) fn load(name: &str, seed: u64) -> Cuda {
    let path = format!("{}/tests/cuda/{name}.ptx", env!("CARGO_MANIFEST_DIR"));
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let machine = Machine::new(Gpu::h200());
    let module = machine.load(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
    Cuda { machine, module, shared_bytes: 0, seed }
}

impl Cuda {
    /// Memory that holds these values.
    pub(crate) fn put<T: Plain>(&self, values: &[T]) -> u64 {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.bytes()).collect();
        let address = self.allocate(bytes.len());
        self.machine.write(address, &bytes).unwrap();
        address
    }

    /// Memory that holds nothing.
    pub(crate) fn allocate(&self, bytes: usize) -> u64 {
        self.machine.allocate(bytes).unwrap()
    }

    /// The values that memory holds.
    pub(crate) fn get<T: Plain>(&self, address: u64, count: usize) -> Vec<T> {
        let mut bytes = vec![0; count * size_of::<T>()];
        self.machine.read(address, &mut bytes).unwrap();
        bytes.chunks(size_of::<T>()).map(T::of).collect()
    }

    /// Runs a kernel.
    pub(crate) fn try_run(&self, name: &str, grid: [u32; 3], block: [u32; 3], params: Vec<Vec<u8>>) -> Result<Counters, LaunchError> {
        let kernel: Kernel = self.module.kernel(name).unwrap_or_else(|| panic!("no kernel {name}"));
        let params: Vec<&[u8]> = params.iter().map(Vec::as_slice).collect();
        let options = Options { seed: self.seed, max_instructions: 1 << 18, ..Options::default() };
        let launch = Launch { shared_bytes: self.shared_bytes, options, ..Launch::new(grid, block, &params) };
        self.machine.launch(&kernel, &launch)
    }

    /// Runs a kernel in which nothing is wrong.
    #[track_caller]
    pub(crate) fn run(&self, name: &str, grid: u32, block: u32, params: Vec<Vec<u8>>) -> Counters {
        let outcome = self.try_run(name, [grid, 1, 1], [block, 1, 1], params);
        outcome.unwrap_or_else(|error| panic!("{name} with seed {}: {error}", self.seed))
    }

    /// Runs a kernel in which something is wrong.
    #[track_caller]
    pub(crate) fn fault(&self, name: &str, grid: u32, block: u32, params: Vec<Vec<u8>>) -> Fault {
        match self.try_run(name, [grid, 1, 1], [block, 1, 1], params) {
            Err(LaunchError::Fault(fault)) => *fault,
            other => panic!("{name} with seed {}: {other:?}", self.seed),
        }
    }
}

/// Numbers from 0 to below `limit`, others for each seed.
pub(crate) fn random(seed: u64, limit: u64) -> impl FnMut() -> u64 {
    let mut state = seed.wrapping_add(1);
    move || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) % limit
    }
}

/// Small whole numbers, whose sums and products are exact.
pub(crate) fn whole(seed: u64, count: usize) -> Vec<f32> {
    let mut next = random(seed, 17);
    (0..count).map(|_| next() as f32 - 8.0).collect()
}

#[track_caller]
pub(crate) fn close(found: f64, expected: f64, relative: f64) {
    let near =
        (found - expected).abs() <= relative * expected.abs().max(1e-300) || found == expected || (found.is_nan() && expected.is_nan());
    assert!(near, "{found} is not {expected}");
}
