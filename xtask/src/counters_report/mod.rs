//! `cargo xtask counters-report launches.json counters.csv`: writes the hardware counters of the gallery's kernels as a page.
//!
//! `launches.json` is the list that `against_triton --profile` writes: for each row, the kernels that each side launched, in their order. `counters.csv` is the
//! report of NVIDIA's profiler on the same run ([`raw_page`]). A kernel of the report belongs to a row by its process and its order, and must have the name that the
//! list has. `docs/gallery.md` has the commands that make both files.
//!
//! ```json
//! {
//!   "date": "2026-01-31", "commit": "0123456789ab", "gpu": "NVIDIA H200", "driver": "580.159.04",
//!   "versions": { "galatea": "0.1.0", "torch": "2.11.0", "triton": "3.6.0" },
//!   "command": "cargo bench -p galatea-gallery --bench against_triton -- --profile launches.json --configs results.json",
//!   "failed": [],
//!   "rows": [
//!     { "work": "bias_relu bf16", "shape": "8192x4096", "least": { "read": 2097664, "written": 2097152 },
//!       "galatea": { "process": 11, "kernels": ["bias_relu"], "config": "Config { .. }" },
//!       "triton": { "process": 12, "kernels": ["bias_relu_kernel"], "config": "{..}" } }
//!   ]
//! }
//! ```
//!
//! `least` counts the sectors that inputs and outputs occupy; it is null where the data decides how many sectors are moved. `triton` is absent if that side
//! failed after ours was counted.
//!
//! # Which sectors are counted
//!
//! A work should move each sector of its inputs and outputs once. The two directions need different counters:
//!
//! - **Read:** sectors that come from the GPU's memory, with empty caches before each kernel (`--cache-control all`). Loads of one sector by several
//!   multiprocessors, and second loads that hit the L2, do not count: the number is that of distinct sectors, unless a sector is evicted between two loads.
//! - **Written:** sectors that the multiprocessors send to the L2. Stores to the memory would be too few, because at the end of a kernel the L2 still holds up to
//!   its size of them. Partial stores to one sector count several times, as they should.
//!
//! The page also shows the sectors that the multiprocessors ask the L2 for, which has no least number: neighbouring programs may need the same sector.

mod raw_page;

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use crate::process;
use raw_page::Kernel;

/// The largest ratios that count as reached.
const SECTORS_TARGET: f64 = 1.05;
const INSTRUCTIONS_TARGET: f64 = 1.1;
const REGISTERS_TARGET: f64 = 1.2;

const PAGE: &str = "benchmarks-gallery-counters.md";

#[derive(clap::Args)]
pub(crate) struct Args {
    /// List of launches that `against_triton --profile` wrote
    #[arg(value_name = "LAUNCHES.json")]
    launches: PathBuf,
    /// Report of `ncu` on that run, as CSV of its raw page
    #[arg(value_name = "COUNTERS.csv")]
    counters: PathBuf,
    /// Write benchmarks-gallery-counters.md to this folder
    #[arg(long, value_name = "DIR", default_value = "docs")]
    out: PathBuf,
}

#[derive(Deserialize)]
struct Launches {
    date: String,
    commit: String,
    gpu: String,
    driver: String,
    versions: BTreeMap<String, String>,
    command: String,
    failed: Vec<String>,
    rows: Vec<Row>,
}

#[derive(Deserialize)]
struct Row {
    work: String,
    shape: String,
    least: Option<Least>,
    galatea: Side,
    triton: Option<Side>,
}

/// Sectors.
#[derive(Clone, Copy, Deserialize)]
struct Least {
    read: f64,
    written: f64,
}

/// The kernels that one side launched.
#[derive(Deserialize)]
struct Side {
    process: u64,
    kernels: Vec<String>,
}

/// The counters of a row of the page: sums over the kernels of each side.
struct Counted {
    work: String,
    shape: String,
    least: Option<Least>,
    galatea: Sums,
    triton: Sums,
}

struct Sums {
    duration_ns: f64,
    dram_read: f64,
    l2_read: f64,
    l2_written: f64,
    instructions: f64,
    /// The largest number of a kernel.
    registers: f64,
    /// The mean, by the time of the kernels.
    occupancy: f64,
    /// How busy each unit was: the mean, by the time of the kernels.
    busy: [f64; 4],
}

pub(crate) fn run(args: &Args) -> Result<()> {
    // Paths are relative to the directory of the command line, which Cargo keeps.
    let read = |path: &PathBuf| std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()));
    let launches: Launches = serde_json::from_str(&read(&args.launches)?)
        .with_context(|| format!("{} is no list of launches of `against_triton --profile`", args.launches.display()))?;
    let kernels = raw_page::read(&read(&args.counters)?).with_context(|| format!("{} is no report of `ncu`", args.counters.display()))?;
    let rows = counted(&launches, kernels)?;
    let out = process::root().join(&args.out);
    std::fs::create_dir_all(&out)?;
    std::fs::write(out.join(PAGE), page(&launches, &rows))?;
    println!("wrote {PAGE} in {}", args.out.display());
    Ok(())
}

/// The commands that make the page. `program` is the command line of the run that is profiled.
fn commands(program: &str) -> String {
    format!(
        "cargo bench -p galatea-gallery --bench against_triton -- --out results.json --sizes aligned\n\
         ncu --target-processes all --profile-from-start off --cache-control all --clock-control none \\\n    \
         --metrics {} \\\n    --export counters --force-overwrite \\\n    {program}\n\
         ncu --import counters.ncu-rep --csv --page raw --print-units base > counters.csv\n\
         cargo xtask counters-report benches/gallery/launches.json counters.csv\n",
        raw_page::metrics()
    )
}

/// Finds the kernels of each row in the report.
fn counted(launches: &Launches, kernels: Vec<Kernel>) -> Result<Vec<Counted>> {
    let mut of_process: BTreeMap<u64, VecDeque<Kernel>> = BTreeMap::new();
    for kernel in kernels {
        of_process.entry(kernel.process).or_default().push_back(kernel);
    }
    let mut rows = Vec::new();
    for row in &launches.rows {
        let of_row = || format!("{} {}", row.work, row.shape);
        let galatea = sums(&row.galatea, &mut of_process).with_context(of_row)?;
        let Some(triton) = &row.triton else { continue };
        let triton = sums(triton, &mut of_process).with_context(of_row)?;
        rows.push(Counted { work: row.work.clone(), shape: row.shape.clone(), least: row.least, galatea, triton });
    }
    if let Some(kernel) = of_process.values().find_map(VecDeque::front) {
        anyhow::bail!("the report has a kernel `{}` of process {}, which the list of launches lacks", kernel.name, kernel.process);
    }
    ensure!(!rows.is_empty(), "the list of launches has no row that both sides launched");
    Ok(rows)
}

/// Takes the kernels of one side of a row from the report.
fn sums(side: &Side, of_process: &mut BTreeMap<u64, VecDeque<Kernel>>) -> Result<Sums> {
    let mut kernels = Vec::new();
    for name in &side.kernels {
        let kernel = of_process.get_mut(&side.process).and_then(VecDeque::pop_front);
        let kernel = kernel.with_context(|| format!("process {} launched `{name}`, which the report lacks", side.process))?;
        ensure!(kernel.name == *name, "process {} launched `{name}`, and the report has `{}` there", side.process, kernel.name);
        kernels.push(kernel);
    }
    ensure!(!kernels.is_empty(), "process {} launched no kernel", side.process);
    let sum = |of: fn(&Kernel) -> f64| kernels.iter().map(of).sum::<f64>();
    let duration_ns = sum(|kernel| kernel.duration_ns);
    Ok(Sums {
        duration_ns,
        dram_read: sum(|kernel| kernel.dram_read),
        l2_read: sum(|kernel| kernel.l2_read),
        l2_written: sum(|kernel| kernel.l2_written),
        instructions: sum(|kernel| kernel.instructions),
        registers: kernels.iter().map(|kernel| kernel.registers).fold(0.0, f64::max),
        occupancy: sum(|kernel| kernel.occupancy * kernel.duration_ns) / duration_ns,
        busy: std::array::from_fn(|unit| kernels.iter().map(|kernel| kernel.busy[unit] * kernel.duration_ns).sum::<f64>() / duration_ns),
    })
}

impl Sums {
    fn moved(&self) -> f64 {
        self.dram_read + self.l2_written
    }
}

impl Counted {
    /// The sectors that ours moves over the least number or, if the data decides that, over Triton's.
    fn sectors_ratio(&self) -> f64 {
        self.galatea.moved() / self.least.map_or(self.triton.moved(), |least| least.read + least.written)
    }

    fn instructions_ratio(&self) -> f64 {
        self.galatea.instructions / self.triton.instructions
    }

    fn registers_ratio(&self) -> f64 {
        self.galatea.registers / self.triton.registers
    }
}

fn page(launches: &Launches, rows: &[Counted]) -> String {
    let versions: Vec<_> = launches.versions.iter().map(|(name, version)| format!("{name} {version}")).collect();
    let mut text = format!(
        "# Hardware counters of the gallery\n\n\
         <!-- Written by `cargo xtask counters-report`; edits are lost. -->\n\n\
         Counted on {} on one {} (driver {}) at commit {}: {}.\n\n\
         - **Launches.** Each kernel of [the gallery](gallery.md) is launched once on each side, with the configuration that was the fastest. Triton's kernels \
         are those without cache hints. The caches are empty before each kernel.\n\
         - **Sectors.** A sector has 32 bytes. Read are those that come from the GPU's memory, written those that the kernels store to the L2 or update there. The \
         least are the sectors of the inputs and outputs of each kernel. Where the data decides how many are moved, the ratio is to Triton's number.\n\
         - **Execution.** Registers are those of a thread, of the kernel with the most. Instructions are those of warps. Occupancy is the mean of the resident \
         warps, in percent of the most that fit. Times are those of one launch under the profiler: [the \
         benchmarks](benchmarks-gallery.md) compare times.\n\
         - **Units.** How much of its peak each unit reached over the whole launch, its begin and end included. \"SM\" is the busiest pipeline of the \
         multiprocessors, or their issue slots. The unit that a kernel uses most limits it, unless all are far from their peaks: then latency does.\n",
        launches.date,
        launches.gpu,
        launches.driver,
        launches.commit,
        versions.join(", "),
    );
    let sectors = reached(rows, Counted::sectors_ratio, SECTORS_TARGET);
    let instructions = reached(rows, Counted::instructions_ratio, INSTRUCTIONS_TARGET);
    let registers = reached(rows, Counted::registers_ratio, REGISTERS_TARGET);
    let _ = writeln!(
        text,
        "- **Targets.** Sectors at most {SECTORS_TARGET} times the least: {sectors}. Warp instructions at most {INSTRUCTIONS_TARGET} times Triton's: \
         {instructions}. Registers at most {REGISTERS_TARGET} times Triton's: {registers}. Ratios above a target are bold."
    );
    if !launches.failed.is_empty() {
        let _ = writeln!(text, "- **Not counted.** {}.", launches.failed.join(", "));
    }
    text += &memory_table(rows);
    text += &execution_table(rows);
    text += &units_table(rows);
    let _ = write!(text, "\nMade by:\n\n```sh\n{}```\n", commands(&launches.command));
    text
}

/// How many rows reach a target, with the mean of all ratios.
fn reached(rows: &[Counted], ratio: fn(&Counted) -> f64, target: f64) -> String {
    let reached = rows.iter().filter(|row| ratio(row) <= target).count();
    let mean = (rows.iter().map(|row| ratio(row).ln()).sum::<f64>() / rows.len() as f64).exp();
    format!("{reached} of {} rows (geometric mean {mean:.3})", rows.len())
}

fn memory_table(rows: &[Counted]) -> String {
    let mut text = "\n## Memory\n\n\
         In thousands of sectors. The last two columns are the sectors that the multiprocessors ask the L2 for.\n\n\
         | work | shape | read: galatea | triton | least | written: galatea | triton | least | ratio | from the L2: galatea | triton |\n\
         |---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n"
        .to_owned();
    for row in rows {
        let least = |of: fn(&Least) -> f64| row.least.as_ref().map_or("by data".to_owned(), |least| thousands(of(least)));
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |",
            row.work,
            row.shape,
            thousands(row.galatea.dram_read),
            thousands(row.triton.dram_read),
            least(|least| least.read),
            thousands(row.galatea.l2_written),
            thousands(row.triton.l2_written),
            least(|least| least.written),
            shown(row.sectors_ratio(), SECTORS_TARGET),
            thousands(row.galatea.l2_read),
            thousands(row.triton.l2_read),
        );
    }
    text
}

fn execution_table(rows: &[Counted]) -> String {
    let mut text = "\n## Execution\n\n\
         Instructions are in thousands.\n\n\
         | work | shape | instructions: galatea | triton | ratio | registers: galatea | triton | ratio | occupancy: galatea | triton | time: galatea | triton |\n\
         |---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n"
        .to_owned();
    for row in rows {
        let (galatea, triton) = (&row.galatea, &row.triton);
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} | {} | {} | {} | {:.0} % | {:.0} % | {:.1} µs | {:.1} µs |",
            row.work,
            row.shape,
            thousands(galatea.instructions),
            thousands(triton.instructions),
            shown(row.instructions_ratio(), INSTRUCTIONS_TARGET),
            galatea.registers,
            triton.registers,
            shown(row.registers_ratio(), REGISTERS_TARGET),
            galatea.occupancy,
            triton.occupancy,
            galatea.duration_ns / 1e3,
            triton.duration_ns / 1e3,
        );
    }
    text
}

fn units_table(rows: &[Counted]) -> String {
    let mut text = "\n## Units\n\n\
         In percent of the peak of each unit, Galatea's kernels and then Triton's. The busiest unit is bold.\n\n\
         | work | shape | galatea: SM | L1 | L2 | memory | triton: SM | L1 | L2 | memory |\n\
         |---|---|---:|---:|---:|---:|---:|---:|---:|---:|\n"
        .to_owned();
    for row in rows {
        let of_side = |busy: &[f64; 4]| {
            let most = busy.iter().copied().fold(0.0, f64::max);
            busy.map(|of_unit| if of_unit == most { format!("**{of_unit:.0}**") } else { format!("{of_unit:.0}") }).join(" | ")
        };
        let _ = writeln!(text, "| {} | {} | {} | {} |", row.work, row.shape, of_side(&row.galatea.busy), of_side(&row.triton.busy));
    }
    text
}

fn thousands(number: f64) -> String {
    format!("{:.1}", number / 1e3)
}

/// A ratio, in bold above the target.
fn shown(ratio: f64, target: f64) -> String {
    if ratio <= target { format!("{ratio:.3}") } else { format!("**{ratio:.3}**") }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAUNCHES: &str = r#"{ "date": "2026-01-31", "commit": "0123456789ab", "gpu": "NVIDIA H200", "driver": "580.1",
        "versions": { "torch": "2.11.0", "triton": "3.6.0" }, "command": "./benches/against_triton --profile launches.json", "failed": ["roll bf16 8x8"],
        "method": [], "clocks_before": {},
        "rows": [
          { "work": "add bf16", "shape": "2^20", "least": { "read": 262144, "written": 131072 },
            "galatea": { "process": 11, "kernels": ["add"], "config": "" }, "triton": { "process": 12, "kernels": ["add_kernel"], "config": "{}" } },
          { "work": "sum bf16", "shape": "8x8", "least": null,
            "galatea": { "process": 11, "kernels": ["sum"], "config": "" },
            "triton": { "process": 12, "kernels": ["sum_kernel", "last_kernel"], "config": "{}" } }
        ] }"#;

    fn rows(launches: &str, report: &str) -> Result<Vec<Counted>> {
        counted(&serde_json::from_str(launches)?, raw_page::read(report)?)
    }

    #[test]
    fn a_row_has_the_sums_of_its_kernels() {
        let rows = rows(LAUNCHES, raw_page::tests::REPORT).unwrap();
        let triton = &rows[1].triton;
        assert_eq!(
            (triton.dram_read, triton.l2_written, triton.instructions, triton.duration_ns),
            (311_000.0, 940.0, 1_020_000.0, 24_000.0)
        );
        assert_eq!((triton.registers, triton.occupancy), (48.0, (40.0 * 21.0 + 10.0 * 3.0) / 24.0));
        assert_eq!(rows[0].sectors_ratio(), (262_400.0 + 131_072.0) / (262_144.0 + 131_072.0));
        assert_eq!(rows[1].sectors_ratio(), 301_230.0 / 311_940.0, "the data decides how many sectors are moved: the ratio is to Triton's");
        assert_eq!((rows[0].instructions_ratio(), rows[0].registers_ratio()), (1_048_576.0 / 1e6, 32.0 / 40.0));
    }

    #[test]
    fn the_page_has_a_row_of_each_work_and_the_targets() {
        let launches = serde_json::from_str(LAUNCHES).unwrap();
        let text = page(&launches, &rows(LAUNCHES, raw_page::tests::REPORT).unwrap());
        for line in [
            "| add bf16 | 2^20 | 262.4 | 263.0 | 262.1 | 131.1 | 131.1 | 131.1 | 1.001 | 262.1 | 262.1 |",
            "| sum bf16 | 8x8 | 300.0 | 311.0 | by data | 1.2 | 0.9 | by data | 0.966 | 400.0 | 301.0 |",
            "| add bf16 | 2^20 | 1048.6 | 1000.0 | 1.049 | 32 | 40 | 0.800 | 81 % | 78 % | 12.4 µs | 12.6 µs |",
            "| sum bf16 | 8x8 | 1200.0 | 1020.0 | **1.176** | 64 | 48 | **1.333** | 50 % | 36 % | 20.0 µs | 24.0 µs |",
            "| add bf16 | 2^20 | 36 | 30 | 45 | **82** | 40 | 30 | 45 | **80** |",
            "| sum bf16 | 8x8 | 10 | **70** | 20 | 60 | 18 | **53** | 18 | 45 |",
            "- **Targets.** Sectors at most 1.05 times the least: 2 of 2 rows (geometric mean 0.983). Warp instructions at most 1.1 times Triton's: 1 of 2 rows \
             (geometric mean 1.111). Registers at most 1.2 times Triton's: 1 of 2 rows (geometric mean 1.033). Ratios above a target are bold.",
            "- **Not counted.** roll bf16 8x8.",
            "    ./benches/against_triton --profile launches.json",
        ] {
            assert!(text.lines().any(|of_text| of_text == line), "{line}\n{text}");
        }
        let tables: Vec<&str> = text.lines().filter(|line| line.starts_with('|')).collect();
        assert!(tables.chunk_by(|a, b| a.matches('|').count() == b.matches('|').count()).map(<[_]>::len).eq([4, 4, 4]), "{text}");
    }

    #[test]
    fn launches_that_do_not_match_the_report_are_an_error() {
        let error = |launches: &str, report: &str| format!("{:#}", rows(launches, report).err().expect("an error"));
        let report = raw_page::tests::REPORT;
        let cases = [
            (LAUNCHES.replace("[\"sum\"]", "[\"mul\"]"), "sum bf16 8x8: process 11 launched `mul`, and the report has `sum` there"),
            (LAUNCHES.replace("[\"sum\"]", "[\"sum\", \"last\"]"), "process 11 launched `last`, which the report lacks"),
            (
                LAUNCHES.replace("\"process\": 12", "\"process\": 13"),
                "add bf16 2^20: process 13 launched `add_kernel`, which the report lacks",
            ),
            (LAUNCHES.replace(", \"last_kernel\"", ""), "a kernel `last_kernel` of process 12, which the list of launches lacks"),
            (LAUNCHES.replace("[\"add\"]", "[]"), "process 11 launched no kernel"),
        ];
        for (launches, part) in cases {
            assert!(error(&launches, report).contains(part), "{}", error(&launches, report));
        }
    }

    #[test]
    fn a_row_that_triton_failed_is_left_out() {
        let launches = LAUNCHES
            .replace(r#""triton": { "process": 12, "kernels": ["sum_kernel", "last_kernel"], "config": "{}" }"#, r#""error": "no""#);
        let report: Vec<&str> =
            raw_page::tests::REPORT.lines().filter(|line| !line.contains("sum_kernel") && !line.contains("last_kernel")).collect();
        let rows = rows(&launches, &report.join("\n")).unwrap();
        assert_eq!(rows.iter().map(|row| row.work.as_str()).collect::<Vec<_>>(), ["add bf16"]);
    }

    #[test]
    fn the_page_of_the_gallery_has_the_commands() {
        let text = std::fs::read_to_string(process::root().join("docs/gallery.md")).unwrap();
        let program = "cargo bench -p galatea-gallery --bench against_triton -- --profile launches.json --configs results.json";
        assert!(text.contains(&commands(program)), "docs/gallery.md lacks:\n{}", commands(program));
    }
}
