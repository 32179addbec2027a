//! Launches on a GPU, real or simulated, whose results the host reads back: the report of a checked launch, and the output of `device_print!`.

use kernel_lang::backend::print_records;
use kernel_lang::backend::ptx::REPORT_BYTES;

use crate::error::{AssertionFailed, OutOfBounds};
use crate::kernel::Checked;
use crate::kernel::gpu::Gpu;
use crate::launch::call::Call;
use crate::profile::{self, Observation};
use crate::replay::{self, Forbidden};
use crate::{Error, Result, Tensor, launch::prints};

/// The length of a checked launch's report in 8-byte words; [`REPORT_BYTES`] documents the layout.
const WORDS: usize = REPORT_BYTES.div_ceil(8);

/// Runs the launch, and waits for it.
#[cold]
pub(crate) fn run<G: Gpu, const N: usize, const KEY: usize>(
    gpu: &G,
    call: &Call<'_, '_, N, KEY>,
    observation: Option<&mut Observation>,
) -> Result<()> {
    let is_checked = call.mode.checked;
    replay::forbid(if is_checked { Forbidden::Checked } else { Forbidden::Printing })?;
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
    let printed = if kernel.prints() { Some(buffer(print_records::WORDS)?) } else { None };
    let report = if is_checked { Some(buffer(WORDS)?) } else { None };

    // The parameters after the user's: the address and length of the print buffer, and the address of the report.
    let mut words = Vec::new();
    words.extend(printed.iter().flat_map(|printed| [printed.view().address(), printed.len() as u64]));
    words.extend(report.iter().map(|report| report.view().address()));
    let mut params: Vec<&u64> = call.args.given().iter().collect();
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

/// The error that the kernel reported, if any.
fn read_report<L>(kernel: &'static str, checked: &Checked<L>, report: &[u64]) -> Option<Error> {
    let half = |offset: usize| (report[offset / 8] >> (8 * (offset % 8))) as u32;
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
        op: site.map_or("access", |site| site.kind.builtin()),
        file,
        line: loc.line,
        column: loc.column,
        program_id,
        index: report[3].cast_signed(),
        length: report[4],
        parameter: site.map(|site| site.parameter.to_string()).unwrap_or_default(),
    })))
}
