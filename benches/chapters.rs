//! The plots of the book: the kernels of its chapters over sizes, beside a plain copy.
//!
//! ```sh
//! cargo bench -p galatea-benches --bench chapters -- --out ../target/plots    # on the first GPU, in less than 90 s: a table, the data and a plot for each chapter
//! cargo bench -p galatea-benches --bench chapters -- --device cpu --out ../target/plots vector-add transpose    # two chapters, with small tensors, on the CPU
//! ```
//!
//! The kernels are those of `examples/`, which check their results. This program only times them.

#![allow(dead_code, reason = "a bench uses the launch functions of the examples, and not their checks")]
#![allow(clippy::duplicate_mod, reason = "each example has `mod report`, which the examples share")]

#[path = "../examples/autotuned_norm.rs"]
mod autotuned_norm;
#[path = "../examples/dropout.rs"]
mod dropout;
#[path = "../examples/histogram.rs"]
mod histogram;
#[path = "../examples/layer_norm.rs"]
mod layer_norm;
#[path = "../examples/report/mod.rs"]
mod report;
#[path = "../examples/softmax_rows.rs"]
mod softmax_rows;
#[path = "../examples/transpose.rs"]
mod transpose;
#[path = "../examples/vector_add.rs"]
mod vector_add;

use std::error::Error;
use std::path::PathBuf;
use std::time::Instant;

use galatea::bench::{Contender, Report, Work, perf_report};
use galatea::prelude::*;

/// The command-line arguments.
struct Args {
    device: Device,
    /// The folder of the reports; without `--out`, `chapters` in the current folder.
    out: PathBuf,
    /// The largest number of elements of a tensor.
    len: usize,
    /// The chapters by the names of [`CHAPTERS`]; none are all.
    chapters: Vec<String>,
}

/// Random numbers, and the sizes at which a chapter is measured.
struct Data {
    device: Device,
    numbers: Vec<f32>,
}

type Measure = fn(&Data) -> Result<Report>;

/// The names are those of the files.
const CHAPTERS: [(&str, Measure); 8] = [
    ("vector-add", vector_add),
    ("softmax", softmax),
    ("transpose", transpose),
    ("dropout", dropout),
    ("layer-norm", layer_norm),
    ("layer-norm-backward", layer_norm_backward),
    ("histogram", histogram),
    ("autotuned-norm", autotuned_norm),
];

/// The numbers of columns of the chapters that work on rows.
const COLUMNS: [usize; 9] = [256, 512, 1024, 1536, 2048, 3072, 4096, 6144, 8192];
/// The fewest elements that every chapter has a size for.
const LEAST: usize = 8192;
const F32: usize = size_of::<f32>();

fn main() -> Result<(), Box<dyn Error>> {
    let Args { device, out, len, chapters } = Args::parse()?;
    let start = Instant::now();
    let data = Data { device, numbers: report::random(len, 1) };
    let chosen: Vec<_> =
        CHAPTERS.iter().filter(|(name, _)| chapters.is_empty() || chapters.iter().any(|chapter| chapter == name)).collect();
    for (index, (name, measure)) in chosen.iter().enumerate() {
        println!("[{}/{}] {name} on {}", index + 1, chosen.len(), device.name());
        let report = measure(&data)?;
        print!("{}", report.to_markdown());
        let [_, _, plot] = report.save(&out)?;
        println!("wrote {} after {:.0} s\n", plot.display(), start.elapsed().as_secs_f64());
    }
    Ok(())
}

impl Args {
    fn parse() -> Result<Args, Box<dyn Error>> {
        let (mut device, mut out, mut len, mut chapters) = (None, None, 1 << 26, Vec::new());
        // Cargo adds `--bench`.
        let mut words = std::env::args().skip(1).filter(|word| word != "--bench");
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or_else(|| format!("`{word}` needs a value"));
            match word.as_str() {
                "--device" => device = Some(Device::parse(&value()?)?),
                "--out" => out = Some(PathBuf::from(value()?)),
                "--len" => {
                    len = value()?.parse().ok().filter(|len| *len >= LEAST).ok_or("`--len` needs a number of elements, at least 8192")?
                }
                chapter if CHAPTERS.iter().any(|(name, _)| *name == chapter) => chapters.push(word),
                _ => {
                    let known = CHAPTERS.map(|(name, _)| name).join(", ");
                    return Err(format!("unknown argument `{word}`; the arguments are `--out`, `--device`, `--len`, and of {known}").into());
                }
            }
        }
        let out = out.unwrap_or_else(|| PathBuf::from("chapters"));
        let device = match device {
            Some(device) => device,
            None => Device::default()?,
        };
        // A simulated GPU takes about a microsecond an element, and the CPU executor is no subject of the plots.
        let len = if device.is_cuda() { len } else { len.min(1 << 16) };
        Ok(Args { device, out, len, chapters })
    }
}

impl Data {
    /// The powers of two from 4096 up to the number of elements.
    fn lengths(&self) -> impl Iterator<Item = usize> + use<> {
        let len = self.numbers.len();
        (12..=26).map(|power| 1 << power).filter(move |size| *size <= len)
    }

    /// The number of rows, at all numbers of columns: 4096, unless the tensors are to be small.
    fn rows(&self) -> usize {
        (self.numbers.len() / LEAST).clamp(1, 4096)
    }

    fn tensor(&self, shape: &[usize]) -> Result<Tensor<f32>> {
        self.device.tensor(&self.numbers[..shape.iter().product()])?.reshape(shape)
    }

    /// Two tensors between which as many bytes are copied as `bytes`: a half is read, and a half is written.
    fn copied(&self, bytes: usize) -> Result<(Tensor<f32>, Tensor<f32>)> {
        let x = self.tensor(&[bytes / (2 * F32)])?;
        let y = self.device.empty_like(&x)?;
        Ok((x, y))
    }
}

/// The contender that each kernel is compared with.
fn copy<'w>(bytes: usize, (x, y): &'w mut (Tensor<f32>, Tensor<f32>)) -> Contender<'w> {
    Contender::new("copy", Work::bytes(bytes), || y.view_mut().copy_from(&x.view()))
}

fn vector_add(data: &Data) -> Result<Report> {
    perf_report("vector-add").x("elements", data.lengths()).run(&data.device, |n, step| {
        let (x, y) = (data.tensor(&[n])?, data.tensor(&[n])?);
        let mut out = data.device.empty_like(&x)?;
        let mut copied = data.copied(2 * F32 * n)?;
        step.time([
            Contender::new("galatea", Work::bytes(3 * F32 * n), || vector_add::vector_add(&x, &y, &mut out)),
            copy(2 * F32 * n, &mut copied),
        ])
    })
}

fn softmax(data: &Data) -> Result<Report> {
    perf_report("softmax").x("columns", COLUMNS).linear_x().run(&data.device, |columns, step| {
        let x = data.tensor(&[data.rows(), columns])?;
        let mut y = data.device.empty_like(&x)?;
        let bytes = 2 * F32 * x.len();
        let mut copied = data.copied(bytes)?;
        step.time([Contender::new("galatea", Work::bytes(bytes), || softmax_rows::softmax(&x, &mut y)), copy(bytes, &mut copied)])
    })
}

fn transpose(data: &Data) -> Result<Report> {
    let unit = data.numbers.len().isqrt() / 16;
    let sides = (1..=16).map(|i| unit * i);
    perf_report("transpose").x("rows and columns", sides).linear_x().run(&data.device, |side, step| {
        let x = data.tensor(&[side, side])?;
        let mut y = data.device.empty_like(&x)?;
        let bytes = 2 * F32 * x.len();
        let mut copied = data.copied(bytes)?;
        step.time([Contender::new("galatea", Work::bytes(bytes), || transpose::transpose(&x, &mut y)), copy(bytes, &mut copied)])
    })
}

fn dropout(data: &Data) -> Result<Report> {
    perf_report("dropout").x("elements", data.lengths()).run(&data.device, |n, step| {
        let x = data.tensor(&[n])?;
        let (mut y, mut z) = (data.device.empty_like(&x)?, data.device.empty_like(&x)?);
        let bytes = 2 * F32 * n;
        let mut copied = data.copied(bytes)?;
        step.time([
            Contender::new("galatea", Work::bytes(bytes), || dropout::dropout(&x, &mut y, 0.25, 7)),
            Contender::new("galatea, four numbers at once", Work::bytes(bytes), || dropout::dropout4(&x, &mut z, 0.25, 7)),
            copy(bytes, &mut copied),
        ])
    })
}

fn layer_norm(data: &Data) -> Result<Report> {
    perf_report("layer-norm").x("columns", COLUMNS).linear_x().run(&data.device, |columns, step| {
        let mut norm = layer_norm::LayerNorm::new(data.tensor(&[columns])?, data.tensor(&[columns])?, data.rows())?;
        let x = data.tensor(&[data.rows(), columns])?;
        let mut y = data.device.empty_like(&x)?;
        let bytes = 2 * F32 * x.len();
        let mut copied = data.copied(bytes)?;
        step.time([Contender::new("galatea", Work::bytes(bytes), || norm.forward(&x, &mut y)), copy(bytes, &mut copied)])
    })
}

fn layer_norm_backward(data: &Data) -> Result<Report> {
    perf_report("layer-norm-backward").x("columns", COLUMNS).linear_x().run(&data.device, |columns, step| {
        let mut norm = layer_norm::LayerNorm::new(data.tensor(&[columns])?, data.tensor(&[columns])?, data.rows())?;
        let (x, dy) = (data.tensor(&[data.rows(), columns])?, data.tensor(&[data.rows(), columns])?);
        let (mut dx, mut dparameters) = (data.device.empty_like(&x)?, data.device.zeros::<f32>([2, columns])?);
        norm.forward(&x, &mut dx)?;
        let bytes = 3 * F32 * x.len();
        let mut copied = data.copied(2 * F32 * x.len())?;
        step.time([
            Contender::new("galatea", Work::bytes(bytes), || norm.backward(&dy, &x, &mut dx, &mut dparameters)),
            copy(2 * F32 * x.len(), &mut copied),
        ])
    })
}

fn histogram(data: &Data) -> Result<Report> {
    perf_report("histogram").x("elements", data.lengths()).run(&data.device, |n, step| {
        let x = data.tensor(&[n])?;
        let [mut blocks, mut elements] = [data.device.zeros::<i32>(64)?, data.device.zeros::<i32>(64)?];
        let bytes = F32 * n;
        let mut copied = data.copied(bytes)?;
        step.time([
            Contender::new("galatea, by blocks", Work::bytes(bytes), || histogram::histogram_by_blocks(&x, &mut blocks)),
            Contender::new("galatea, by elements", Work::bytes(bytes), || histogram::histogram_by_elements(&x, &mut elements)),
            copy(bytes, &mut copied),
        ])
    })
}

fn autotuned_norm(data: &Data) -> Result<Report> {
    perf_report("autotuned-norm").x("columns", COLUMNS).linear_x().run(&data.device, |columns, step| {
        let (x, weight) = (data.tensor(&[data.rows(), columns])?, data.tensor(&[columns])?);
        let mut y = data.device.empty_like(&x)?;
        // Tunes for this number of columns, before anything is timed.
        autotuned_norm::norm(&x, &weight, &mut y)?;
        let bytes = 2 * F32 * x.len();
        let mut copied = data.copied(bytes)?;
        step.time([Contender::new("galatea", Work::bytes(bytes), || autotuned_norm::norm(&x, &weight, &mut y)), copy(bytes, &mut copied)])
    })
}
