//! The cost of race detection in global memory: the compiler's own kernels with and without it, on one core.
//!
//! ```sh
//! cargo run --release -p kernel-sim --example race_cost
//! ```

use std::time::{Duration, Instant};

use kernel_sim::{Gpu, Launch, Machine, Options};

/// Elements of a tensor.
const LEN: usize = 1 << 20;

/// A kernel of `kernel-lang/tests/filetests/ptx`, its programs and their threads, and its arguments: an element's bytes for a tensor, or a number.
struct Case {
    file: &'static str,
    programs: u32,
    threads: u32,
    shared_bytes: u32,
    arguments: &'static [Argument],
}

enum Argument {
    Tensor(usize),
    Number(u64),
}

use Argument::{Number, Tensor};

const CASES: &[Case] = &[
    Case {
        file: "sm_80/vector_add",
        programs: 1024,
        threads: 128,
        shared_bytes: 0,
        arguments: &[Tensor(4), Tensor(4), Tensor(4), Number(LEN as u64)],
    },
    Case {
        file: "sm_80/layer_norm_row",
        programs: 1024,
        threads: 64,
        shared_bytes: 1 << 10,
        arguments: &[Tensor(2), Tensor(2), Number(1000), Number(0)],
    },
    Case {
        file: "sm_80/row_loop",
        programs: 256,
        threads: 128,
        shared_bytes: 48 << 10,
        arguments: &[Tensor(4), Tensor(4), Number(4096), Number(4096)],
    },
    Case { file: "sm_80/silu_bf16", programs: 512, threads: 128, shared_bytes: 0, arguments: &[Tensor(2), Tensor(2), Number(LEN as u64)] },
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build()?;
    for case in CASES {
        let both = pool.install(|| [run(case, false), run(case, true)].map(|time| time.map_err(|error| error.to_string())));
        let [checked, unchecked] = both;
        let (checked, unchecked) = (checked?, unchecked?);
        let ratio = checked.as_secs_f64() / unchecked.as_secs_f64();
        println!("{:<20} {:>8.1} ms with races found, {:>8.1} ms without: {ratio:.2} times", case.file, ms(checked), ms(unchecked));
    }
    Ok(())
}

fn ms(time: Duration) -> f64 {
    1e3 * time.as_secs_f64()
}

/// The shortest of some runs.
fn run(case: &Case, allow_races: bool) -> Result<Duration, Box<dyn std::error::Error>> {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../kernel-lang/tests/filetests/ptx");
    let text = std::fs::read_to_string(format!("{root}/{}.ptx", case.file))?;
    let machine = Machine::new(Gpu::h200());
    let module = machine.load(&text)?;
    let name = module.kernels().next().ok_or("no kernel")?.to_owned();
    let kernel = module.kernel(&name).ok_or("no kernel")?;
    let mut words = Vec::new();
    for argument in case.arguments {
        match argument {
            Number(number) => words.push(*number),
            Tensor(bytes) => {
                let tensor = machine.allocate(bytes * LEN)?;
                machine.fill(tensor, &[0x3f], bytes * LEN)?;
                words.extend([tensor, LEN as u64]);
            }
        }
    }
    let bytes: Vec<[u8; 8]> = words.iter().map(|word| word.to_le_bytes()).collect();
    let params: Vec<&[u8]> = bytes.iter().zip(kernel.params()).map(|(word, size)| &word[..size as usize]).collect();
    let options = Options { allow_races, ..Options::default() };
    let launch = Launch { options, shared_bytes: case.shared_bytes, ..Launch::new([case.programs, 1, 1], [case.threads, 1, 1], &params) };
    let mut best = Duration::MAX;
    for _ in 0..5 {
        let start = on_cpu();
        machine.launch(&kernel, &launch)?;
        best = best.min(on_cpu() - start);
    }
    Ok(best)
}

/// The time that this thread had a core for; where the system does not say, the time of a clock.
fn on_cpu() -> Duration {
    static START: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
    let of_thread = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanoseconds = of_thread.and_then(|text| text.split_whitespace().next()?.parse().ok());
    nanoseconds.map_or_else(|| START.get_or_init(Instant::now).elapsed(), Duration::from_nanos)
}
