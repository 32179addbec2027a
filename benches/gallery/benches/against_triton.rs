//! The gallery's kernels beside the same kernels in Triton, in one run, on the same tensors, by the method of `against_peers`.
//!
//! Each work is timed for its three sizes. Triton's kernel is timed twice: as it is written, and with its best eviction hints and numbers of stages. Both sides
//! are tuned over the same configurations. Every result is compared with a reference in f64.
//!
//! ```sh
//! cargo bench -p galatea-gallery --bench against_triton -- --out results.json    # where python3 has torch and triton; Cargo runs it in benches/gallery
//! ```
//!
//! `--only WORD,WORD` selects the works whose name contains one of the words, as in `--only bias_relu,pool`; `--sizes aligned` takes only the aligned
//! size of each (`odd`, `small`: the other two), and `--types bf16` only rows of this type, or of works that have a single type. `--profile FILE` launches
//! each work once for a profiler, in place of timing it: see `counters.rs`.

mod counters;
#[path = "../../peers/mod.rs"]
mod peers;
#[path = "../../rounds/mod.rs"]
mod rounds;
#[path = "../../shared/mod.rs"]
mod shared;

use std::error::Error;
use std::path::PathBuf;

use counters::Configs;
use galatea::bench::do_bench;
use galatea::prelude::*;
use galatea::{Dtype, Replay};
use galatea_gallery::work::{Case, Fill, Run};
use galatea_gallery::{WORKS, Work};
use peers::Peers;
use rounds::{ROUNDS, Rounds, commit, shape_text};
use serde_json::{Value, json};
use shared::Shared;

const SCRIPT: &str = "gallery/peers/gallery.py";

/// The names of the sizes of a work, in their order.
const SIZES: [&str; 3] = ["aligned", "odd", "small"];

/// A work of fewer bytes than this has its tensors at other addresses in each round. Their addresses change the time of a short kernel by up to 1 us, and
/// not by the same time in two processes.
const MOVED_BELOW: u64 = 16 << 20;

/// How this program measures.
const METHOD: &[&str] = &[
    "**Kernels.** The kernels of [the gallery](gallery.md), which nobody has optimised. Triton's have the same structure.",
    "**Data.** Both sides use the same random tensors, at the same addresses of the GPU's memory. Every result of both sides is compared with a reference \
     in f64 in the same run.",
    "**Times.** Both sides replay CUDA graphs, alternating in order, with the L2 cache flushed before each replay. A time is the median over five rounds of \
     the mean of the middle half of a round. (The times of short kernels have two modes some 0.2 us apart, between which a median jumps.) Works of \
     less than 16 MiB have their tensors at other addresses in each round, because these change the time of a short kernel by up to 1 us; \
     scratch memory and the buffers of the copy may stay.",
    "**Peers.** Both sides are tuned over the same block sizes and warps. \"triton\" is the kernel as it is written; \"triton hinted\" has the best eviction \
     hint for its loads and the best number of stages for its loops, too.",
    "**Copy.** \"copy\" is the faster of two copies that move as many bytes: a memcpy node of a CUDA graph, and a Triton kernel.",
    "**Floor.** \"floor\" is a Triton kernel that only reads and writes, as many bytes as the work reads and as many as it writes, with the best eviction hint for \
     its loads. It is timed for the aligned sizes, behind the rounds.",
];

struct Options {
    out: Option<PathBuf>,
    /// The list of launches of a profile, which is made in place of a measurement.
    profile: Option<PathBuf>,
    configs: Vec<PathBuf>,
    only: Vec<String>,
    types: Vec<String>,
    /// Names of sizes of each work. None: all for a measurement, and the aligned one for a profile.
    sizes: Vec<String>,
}

impl Options {
    /// The command line of the run, with a name in the working directory for its results.
    fn command(&self) -> String {
        let what = match &self.profile {
            Some(_) if self.configs.is_empty() => "--profile launches.json",
            Some(_) => "--profile launches.json --configs results.json",
            None => "--out results.json",
        };
        let mut command = format!("cargo bench -p galatea-gallery --bench against_triton -- {what}");
        for (name, words) in [("only", &self.only), ("types", &self.types), ("sizes", &self.sizes)] {
            if !words.is_empty() {
                command += &format!(" --{name} {}", words.join(","));
            }
        }
        command
    }

    fn has_size(&self, name: &str) -> bool {
        if self.sizes.is_empty() { self.profile.is_none() || name == "aligned" } else { self.sizes.iter().any(|size| size == name) }
    }

    fn has_type(&self, dtype: Dtype) -> bool {
        self.types.is_empty() || self.types.contains(&dtype.to_string())
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let options = options()?;
    if Device::cuda_count() == 0 {
        println!("skipped: there is no CUDA device");
        return Ok(());
    }
    let device = Device::cuda(0)?;
    let configs = if options.configs.is_empty() { None } else { Some(Configs::read(&options.configs)?) };
    let mut peers = Peers::start(SCRIPT)?;
    let versions = peers.ask("versions")?;
    let clocks_before = peers.ask("clocks")?;
    let (mut rows, mut failed) = (Vec::new(), Vec::new());
    for work in WORKS.iter().filter(|work| options.only.is_empty() || options.only.iter().any(|word| work.name.contains(word))) {
        for &dtype in work.dtypes.iter().filter(|dtype| work.dtypes.len() == 1 || options.has_type(**dtype)) {
            for (sizes, size) in work.sizes.iter().zip(SIZES).filter(|(_, name)| options.has_size(name)) {
                let name = format!("{} {dtype} {}", work.name, shape_text(sizes));
                let known = match configs.as_ref().map(|configs| configs.of(work, dtype, sizes)).transpose() {
                    Ok(known) => known,
                    Err(error) => {
                        eprintln!("{name}: {error}");
                        failed.push(name);
                        continue;
                    }
                };
                let done = match &options.profile {
                    Some(_) => counters::launch_once(device, &mut peers, work, dtype, sizes, known),
                    None => measure(device, &mut peers, work, dtype, sizes, size == SIZES[0]),
                };
                // A row with an error is half done.
                let error = done.as_ref().map_or_else(|error| Some(error.to_string()), |row| row["error"].as_str().map(str::to_owned));
                if let Some(error) = error {
                    eprintln!("{name}: {error}");
                    failed.push(name);
                    // The peers may have lost their GPU.
                    peers = Peers::start(SCRIPT)?;
                }
                let Ok(row) = done else { continue };
                rows.push(row);
                // After each row, so that a run that is cut off leaves what it measured.
                if let Some(out) = options.profile.as_ref().or(options.out.as_ref()) {
                    let run = json!({
                        "date": jiff::Timestamp::now().strftime("%Y-%m-%d").to_string(),
                        "commit": commit(),
                        "gpu": versions["gpu"],
                        "driver": versions["driver"],
                        "versions": { "galatea": env!("CARGO_PKG_VERSION"), "torch": versions["torch"], "triton": versions["triton"] },
                        "command": options.command(),
                        "method": METHOD,
                        "clocks_before": clocks_before,
                        "clocks_after": peers.ask("clocks")?,
                        "failed": failed,
                        "rows": rows,
                    });
                    std::fs::write(out, serde_json::to_string_pretty(&run)?)?;
                }
            }
        }
    }
    if failed.is_empty() { Ok(()) } else { Err(format!("not measured: {}", failed.join(", ")).into()) }
}

fn options() -> Result<Options, Box<dyn Error>> {
    let mut words = std::env::args().skip(1).filter(|word| word != "--bench");
    let mut options = Options { out: None, profile: None, configs: Vec::new(), only: Vec::new(), types: Vec::new(), sizes: Vec::new() };
    while let Some(word) = words.next() {
        let mut value = |what: &str| words.next().ok_or_else(|| format!("`{word}` needs {what}"));
        match word.as_str() {
            "--out" => options.out = Some(PathBuf::from(value("a file")?)),
            "--profile" => options.profile = Some(PathBuf::from(value("a file")?)),
            "--configs" => options.configs = value("files of results")?.split(',').map(PathBuf::from).collect(),
            "--only" => options.only = value("parts of names of works")?.split(',').map(str::to_owned).collect(),
            "--types" => options.types = value("element types")?.split(',').map(str::to_owned).collect(),
            "--sizes" => options.sizes = value("names of sizes")?.split(',').map(str::to_owned).collect(),
            _ => {
                return Err(format!(
                    "unknown argument `{word}`\nhelp: there are `--out FILE`, `--profile FILE`, `--configs FILE,FILE`, `--only WORD,WORD`, `--types TYPE,TYPE` \
                     and `--sizes NAME,NAME`"
                )
                .into());
            }
        }
    }
    if let Some(unknown) = options.sizes.iter().find(|size| !SIZES.contains(&size.as_str())) {
        return Err(format!("no size is named `{unknown}`\nhelp: there are {}", SIZES.join(", ")).into());
    }
    if options.profile.is_none() && !options.configs.is_empty() {
        return Err("`--configs` is for a profile\nhelp: add `--profile FILE`".into());
    }
    Ok(options)
}

/// Times a work for one element type and one shape, lets the peers compare its results with the references, and prints and returns the row. `has_floor` says
/// whether the floor is timed, too.
fn measure(
    device: Device,
    peers: &mut Peers,
    work: &Work,
    dtype: Dtype,
    sizes: &[usize],
    has_floor: bool,
) -> Result<Value, Box<dyn Error>> {
    let words: Vec<String> = sizes.iter().map(usize::to_string).collect();
    let prepared = peers.ask(&format!("prepare {} {dtype} {}", work.name, words.join(" ")))?;
    let mut case = case(device, work, dtype, sizes, &prepared["tensors"], Memory::Shared)?;

    (work.launch)(dtype, &case, sizes, &mut Run::Launch)?; // tunes
    let mut run = Run::Configs(Vec::new());
    (work.launch)(dtype, &case, sizes, &mut run)?;
    let Run::Configs(configs) = run else { unreachable!("a launch does not change its kind") };
    let capture = |case: &Case| Replay::capture(device.stream(), || (work.launch)(dtype, case, sizes, &mut Run::Launch));
    let mut replay = capture(&case)?;
    let bytes = prepared["bytes"].as_u64().ok_or("the peers did not say how many bytes the work moves")?;
    let mut rounds = Rounds::default();
    for round in 0..ROUNDS {
        if round > 0 && bytes < MOVED_BELOW {
            drop(case);
            let moved = peers.ask("move")?;
            case = self::case(device, work, dtype, sizes, &moved["tensors"], Memory::Shared)?;
            replay = capture(&case)?;
        }
        rounds.time(peers, || Ok(do_bench(&device, || replay.launch(&mut case))?.middle_us))?;
    }
    let (ours, theirs) = rounds.medians();
    // An element that ours fails to write is NaN, not a peer's right one.
    peers.ask("clear")?;
    replay.launch(&mut case)?;
    device.synchronize()?;
    peers.ask("check")?;
    let floor = if has_floor { peers.ask("floor")?["us"].as_f64() } else { None };

    let time = |peer: &str| theirs.get(peer).copied().ok_or_else(|| format!("the peers timed no `{peer}`"));
    let (plain, hinted, copy) = (time("triton")?, time("triton hinted")?, time("copy")?);
    let (shape, config) = (shape_text(sizes), configs.join(", "));
    println!(
        "{} {dtype} {shape}: {ours:.1} us; triton {plain:.1} us ({:.3}x), with hints {hinted:.1} us ({:.3}x), a copy {copy:.1} us",
        work.name,
        plain / ours,
        hinted / ours
    );
    if let Some(floor) = floor {
        println!("    the floor {floor:.1} us");
    }
    println!("    ours {config}\n    triton {}\n    hinted {}", prepared["triton_config"], prepared["hinted_config"]);
    let mut row = json!({
        "work": format!("{} {dtype}", work.name), "shape": shape, "bytes": bytes, "ours_us": ours, "copy_us": copy,
        "peers": { "triton": plain, "triton hinted": hinted }, "seed": prepared["seed"], "config": config,
        "triton_config": format!("{}; hinted: {}", prepared["triton_config"], prepared["hinted_config"]),
    });
    if let Some(floor) = floor {
        row["floor_us"] = json!(floor);
    }
    Ok(row)
}

/// Where the tensors of a work lie that the peers made.
#[derive(Clone, Copy, PartialEq)]
enum Memory {
    /// At the same addresses of the GPU's memory, so that the addresses favour nobody.
    Shared,
    /// In copies of our own: a profiler that runs a kernel several times restores what it wrote, and need not do so for the memory of another process.
    Copied,
}

/// The tensors of a work: those of the peers, and scratch memory of our own.
fn case(device: Device, work: &Work, dtype: Dtype, sizes: &[usize], tensors: &Value, memory: Memory) -> Result<Case, Box<dyn Error>> {
    let mut case = Case::default();
    for row in (work.tensors)(sizes) {
        if let Fill::Addresses(of, starts) = &row.fill {
            case.add_addresses(device, row.name, of, starts)?;
            continue;
        }
        macro_rules! add {
            ($($name:ident: $ty:ty),*) => {
                match (row.dtype.unwrap_or(dtype), &row.fill) {
                    $(
                        (Dtype::$name, Fill::Scratch) => case.add(row.name, Box::new(device.zeros::<$ty>(row.len)?)),
                        (Dtype::$name, _) => {
                            let shared = Shared::<$ty>::open(&device, &tensors[row.name]).map_err(|error| format!("`{}`: {error}", row.name))?;
                            if shared.len() != row.len {
                                return Err(format!("`{}` has {} elements on the peers' side, and {} on ours", row.name, shared.len(), row.len).into());
                            }
                            match memory {
                                Memory::Shared => case.add(row.name, shared),
                                Memory::Copied => case.add(row.name, Box::new(shared.try_clone()?)),
                            }
                        }
                    )*
                    (other, _) => return Err(format!("no work has a tensor of {other}").into()),
                }
            };
        }
        add!(F32: f32, F16: f16, Bf16: bf16, I8: i8, I32: i32, I64: i64, U8: u8);
    }
    Ok(case)
}
