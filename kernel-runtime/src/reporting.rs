//! Launches on a GPU, simulated or not, that write what the host reads back: what a checked one found, and what `device_print!` says.

use kernel_lang::backend::printed;
use kernel_lang::backend::ptx::REPORT_BYTES;

use crate::call::Call;
use crate::error::{AssertionFailed, OutOfBounds};
use crate::gpu::Gpu;
use crate::graph::{self, Forbidden};
use crate::kernel::Checked;
use crate::profile::{self, Observation};
use crate::{Error, Result, Tensor, prints};

/// The report of a checked launch, in 8-byte words; [`REPORT_BYTES`] says what is where.
const WORDS: usize = REPORT_BYTES.div_ceil(8);

/// Runs the launch, and waits for it.
#[cold]
pub(crate) fn run<G: Gpu, const N: usize, const KEY: usize>(
    gpu: &G,
    call: &Call<'_, '_, N, KEY>,
    observation: Option<&mut Observation>,
) -> Result<()> {
    let is_checked = call.mode.checked;
    graph::forbid(if is_checked { Forbidden::Checked } else { Forbidden::Printing })?;
    let kernel = call.args.kernel();
    let checked = if is_checked { Some(kernel.checked_on_gpu(gpu, call.key.as_ref(), call.schedule)?) } else { None };
    let loaded = match &checked {
        Some(checked) => &checked.loaded,
        None => call.variant(gpu)?,
    };
    let buffer = |words: usize| -> Result<Tensor<u64>> {
        let mut buffer = gpu.device().zeros(words)?;
        buffer.set_stream(&gpu.stream())?;
        Ok(buffer)
    };
    let printed = if kernel.prints() { Some(buffer(printed::WORDS)?) } else { None };
    let report = if is_checked { Some(buffer(WORDS)?) } else { None };

    // The parameters behind the user's: a pointer and its length, and a bare pointer.
    let mut words = Vec::new();
    words.extend(printed.iter().flat_map(|printed| [printed.view().address(), printed.len() as u64]));
    words.extend(report.iter().map(|report| report.view().address()));
    let mut params = call.args.params().to_vec();
    params.extend(&words);
    // SAFETY: the function takes the arguments' words and these; the buffers live until they are read below.
    unsafe { profile::start(observation, gpu, call.args, loaded, call.grid, &params)? };

    if let Some(printed) = printed {
        prints::show_buffer(kernel.parsed()?, &printed.to_vec()?);
    }
    if let (Some(report), Some(checked)) = (report, &checked)
        && let Some(error) = read_report(kernel.name(), checked, &report.to_vec()?)
    {
        return Err(error);
    }
    Ok(())
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
        op: site.map_or("access", |site| site.kind.word()),
        file,
        line: loc.line,
        column: loc.column,
        program_id,
        index: report[3].cast_signed(),
        length: report[4],
        parameter: site.map(|site| site.parameter.to_string()).unwrap_or_default(),
    })))
}
