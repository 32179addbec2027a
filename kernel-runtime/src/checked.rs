//! Checked launches on a GPU, simulated or not: the kernel writes what left its tensor, or did not hold, into a buffer that is read back.

use kernel_lang::backend::ptx::REPORT_BYTES;

use crate::args::Args;
use crate::error::{AssertionFailed, OutOfBounds};
use crate::gpu::Gpu;
use crate::kernel::Checked;
use crate::{Error, Result, Tensor};

/// The report of a launch, in 8-byte words; [`REPORT_BYTES`] says what is where.
const WORDS: usize = REPORT_BYTES.div_ceil(8);

/// Runs the launch with reporting, and waits for it.
#[cold]
pub(crate) fn run<G: Gpu, const N: usize>(gpu: G, args: &Args<'_, N>, key: &[u64], grid: [u32; 3]) -> Result<()> {
    let kernel = args.kernel();
    let checked = kernel.checked_on_gpu(gpu, key)?;
    let mut report: Tensor<u64> = gpu.device().zeros(WORDS)?;
    report.set_stream(&gpu.stream())?;

    let address = report.view().address();
    let mut params = args.params().to_vec();
    params.push(&address);
    // SAFETY: the function takes the arguments' words and the address of the report, which lives until it is read below.
    unsafe { gpu.start(args, checked.loaded.clone(), grid, &params)? };
    match read_report(kernel.name(), &checked, &report.to_vec()?) {
        Some(error) => Err(error),
        None => Ok(()),
    }
}

/// What the kernel wrote, if it wrote anything.
fn read_report<L>(kernel: &'static str, checked: &Checked<L>, report: &[u64]) -> Option<Error> {
    let half = |place: usize| (report[place / 8] >> (8 * (place % 8))) as u32;
    if half(0) == 0 {
        return None;
    }
    let site = checked.sites.get(half(4) as usize);
    let loc = site.map(|site| site.loc).unwrap_or_default();
    let file = site.and_then(|site| site.file.as_deref()).unwrap_or_default().to_owned();
    let program_id = [half(8), half(12), half(16)];
    if let Some(message) = site.and_then(|site| site.assertion.as_deref()) {
        let (message, line, column) = (message.to_owned(), loc.line, loc.column);
        return Some(Error::AssertionFailed(Box::new(AssertionFailed { kernel, message, file, line, column, program_id })));
    }
    Some(Error::OutOfBounds(Box::new(OutOfBounds {
        kernel,
        op: if site.is_some_and(|site| site.is_store) { "store" } else { "load" },
        file,
        line: loc.line,
        column: loc.column,
        program_id,
        index: report[3].cast_signed(),
        length: report[4],
        parameter: site.map(|site| site.parameter.to_string()).unwrap_or_default(),
    })))
}
