//! Reads the raw page of a report of NVIDIA's profiler: `ncu --import FILE --csv --page raw --print-units base`.
//!
//! The first row has the names of the columns, the second one their units, and each further row is a kernel:
//!
//! ```text
//! "ID","Process ID",..,"Kernel Name",..,"gpu__time_duration.sum","smsp__inst_executed.sum"
//! "","",..,"",..,"ns","inst"
//! "0","4242",..,"add(float*, int)",..,"12,384","1,048,576"
//! ```

use anyhow::{Context, Result, bail, ensure};

pub(super) const DURATION: &str = "gpu__time_duration.sum";
pub(super) const DRAM_READ: &str = "dram__sectors_read.sum";
pub(super) const L2_READ: &str = "lts__t_sectors_srcunit_tex_op_read.sum";
pub(super) const L2_WRITTEN: [&str; 3] =
    ["lts__t_sectors_srcunit_tex_op_write.sum", "lts__t_sectors_srcunit_tex_op_red.sum", "lts__t_sectors_srcunit_tex_op_atom.sum"];
pub(super) const INSTRUCTIONS: &str = "smsp__inst_executed.sum";
pub(super) const REGISTERS: &str = "launch__registers_per_thread";
pub(super) const OCCUPANCY: &str = "sm__warps_active.avg.pct_of_peak_sustained_active";
/// How much of its peak each unit reached: the busiest pipeline of the multiprocessors or their issue slots, the L1 caches, the L2 cache, and the memory.
pub(super) const BUSY: [&str; 4] = [
    "sm__throughput.avg.pct_of_peak_sustained_elapsed",
    "l1tex__throughput.avg.pct_of_peak_sustained_elapsed",
    "lts__throughput.avg.pct_of_peak_sustained_elapsed",
    "dram__throughput.avg.pct_of_peak_sustained_elapsed",
];

/// All columns, as `ncu --metrics` takes them.
pub(super) fn metrics() -> String {
    let single = [DURATION, DRAM_READ, L2_READ];
    [&single[..], &L2_WRITTEN, &[INSTRUCTIONS, REGISTERS, OCCUPANCY], &BUSY].concat().join(",")
}

/// The counters of one launch of a kernel.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Kernel {
    pub(super) process: u64,
    /// Without the parameters that the profiler prints for a kernel of C++.
    pub(super) name: String,
    pub(super) duration_ns: f64,
    /// Sectors that came from the GPU's memory.
    pub(super) dram_read: f64,
    /// Sectors that the multiprocessors asked the L2 for.
    pub(super) l2_read: f64,
    /// Sectors that the multiprocessors stored to the L2, or updated there.
    pub(super) l2_written: f64,
    pub(super) instructions: f64,
    pub(super) registers: f64,
    /// The mean of the resident warps, in percent of the most that a multiprocessor can hold.
    pub(super) occupancy: f64,
    /// How busy each unit of [`BUSY`] was, in percent of its peak.
    pub(super) busy: [f64; 4],
}

/// The kernels of a report, in the order of their launches.
pub(super) fn read(text: &str) -> Result<Vec<Kernel>> {
    // Without `--import`, the profiler and the program print lines of their own in front of the table.
    let lines = text.lines().skip_while(|line| !line.starts_with("\"ID\",")).filter(|line| line.starts_with('"'));
    let table = lines.collect::<Vec<_>>().join("\n");
    let mut rows = csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(table.as_bytes()).into_records();
    let names = rows.next().context("no line begins with \"ID\": `ncu --csv --page raw` writes such a table")??;
    let units = rows.next().context("the table ends after the names of its columns")??;
    let column = |name: &str| {
        names.iter().position(|of_column| of_column == name).with_context(|| {
            format!(
                "there is no column `{name}`: make the report with the metrics that docs/gallery.md names, and print it with `--page raw`"
            )
        })
    };
    let unit = units.get(column(DURATION)?).unwrap_or_default();
    ensure!(
        ["ns", "nsecond"].contains(&unit),
        "the unit of `{DURATION}` is `{unit}`, not nanoseconds: print the report with `--print-units base`"
    );

    let (process, name) = (column("Process ID")?, column("Kernel Name")?);
    let (duration, dram_read, l2_read) = (column(DURATION)?, column(DRAM_READ)?, column(L2_READ)?);
    let l2_written = [column(L2_WRITTEN[0])?, column(L2_WRITTEN[1])?, column(L2_WRITTEN[2])?];
    let (instructions, registers, occupancy) = (column(INSTRUCTIONS)?, column(REGISTERS)?, column(OCCUPANCY)?);
    let [multiprocessors, l1, l2, memory] = BUSY;
    let busy = [column(multiprocessors)?, column(l1)?, column(l2)?, column(memory)?];
    let mut kernels = Vec::new();
    for row in rows {
        let row = row?;
        ensure!(row.len() == names.len(), "kernel {} has {} fields, and there are {} columns", &row[0], row.len(), names.len());
        let number = |at: usize| {
            number(&row[at]).with_context(|| format!("kernel {} `{}`: `{}` is `{}`", &row[0], &row[name], &names[at], &row[at]))
        };
        kernels.push(Kernel {
            process: row[process].parse().with_context(|| format!("`{}` is no process", &row[process]))?,
            name: row[name].split('(').next().unwrap_or_default().to_owned(),
            duration_ns: number(duration)?,
            dram_read: number(dram_read)?,
            l2_read: number(l2_read)?,
            l2_written: number(l2_written[0])? + number(l2_written[1])? + number(l2_written[2])?,
            instructions: number(instructions)?,
            registers: number(registers)?,
            occupancy: number(occupancy)?,
            busy: [number(busy[0])?, number(busy[1])?, number(busy[2])?, number(busy[3])?],
        });
    }
    Ok(kernels)
}

/// A number, which the profiler prints with or without commas between thousands. A metric that the GPU lacks is `n/a`.
fn number(field: &str) -> Result<f64> {
    match field.replace(',', "").parse::<f64>() {
        Ok(number) if number.is_finite() && number >= 0.0 => Ok(number),
        _ => bail!("a number is wanted"),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A report in the profiler's format, written by hand: two kernels of process 11 and three of process 12.
    pub(crate) const REPORT: &str = include_str!("report.csv");

    #[test]
    fn a_report_has_the_counters_of_each_kernel() {
        let kernels = read(REPORT).unwrap();
        let names: Vec<_> = kernels.iter().map(|kernel| (kernel.process, kernel.name.as_str())).collect();
        assert_eq!(names, [(11, "add"), (12, "add_kernel"), (11, "sum"), (12, "sum_kernel"), (12, "last_kernel")]);
        let add = Kernel {
            process: 11,
            name: "add".to_owned(),
            duration_ns: 12_384.0,
            dram_read: 262_400.0,
            l2_read: 262_144.0,
            l2_written: 131_072.0,
            instructions: 1_048_576.0,
            registers: 32.0,
            occupancy: 81.25,
            busy: [35.5, 30.0, 45.0, 82.5],
        };
        assert_eq!(kernels[0], add);
        assert_eq!(kernels[2].l2_written, 1000.0 + 200.0 + 30.0, "stores, and atomics without and with a result");
    }

    fn error(text: &str) -> String {
        format!("{:#}", read(text).unwrap_err())
    }

    #[test]
    fn what_is_no_report_is_an_error() {
        let cases = [
            (String::new(), "no line begins with \"ID\""),
            ("==ERROR== No kernels were profiled.\n".to_owned(), "no line begins with \"ID\""),
            (REPORT.lines().find(|line| line.starts_with("\"ID\"")).unwrap().to_owned(), "the table ends after the names of its columns"),
            (REPORT.replace(INSTRUCTIONS, "smsp__inst_issued.sum"), "there is no column `smsp__inst_executed.sum`"),
            (REPORT.replace("\"ns\"", "\"us\""), "the unit of `gpu__time_duration.sum` is `us`"),
            (REPORT.replace("1,048,576", "n/a"), "kernel 0 `add(float *, int)`: `smsp__inst_executed.sum` is `n/a`: a number is wanted"),
            (REPORT.replace("\"1,048,576\"", "\"1,048,576\",\"2\""), "fields, and there are"),
            (REPORT.replace("\"11\"", "\"eleven\""), "`eleven` is no process"),
        ];
        for (text, part) in cases {
            assert!(error(&text).contains(part), "{}", error(&text));
        }
    }
}
