//! The compilation of the launches of an untrusted package, before any of them runs: what each compilation takes is known before it begins.

use std::panic::{AssertUnwindSafe, catch_unwind};

use kernel_lang::ir::{self, Op};
use kernel_lang::{Bindings, Schedule};

use super::gpu::Gpu;
use super::module::CudaGpu;
use super::parts::{BYTES_PER_TEXT, charge};
use super::{Kernel, bindings};
use crate::device::Backend;
use crate::sim::SimGpu;
use crate::{Device, Error, Result};

/// What a specialised kernel takes at most while it is compiled, in bytes for each of its values.
const BYTES_PER_VALUE: usize = 2048;

/// The bytes that compiling a kernel for this key takes at most. A short kernel may compute many values: static loops repeat their body.
pub(crate) fn compile_bytes(kernel: &Kernel, key: &[u64]) -> Result<usize> {
    let func = kernel.parsed()?;
    Ok(BYTES_PER_VALUE * most_values(func, func.body, &bindings(func, key, &[])).min(kernel_lang::MAX_VALUES))
}

/// Compiles an untrusted kernel for this key and, on a GPU, schedule. Returns how many bytes of scratch memory each thread of the CPU takes for it.
pub(crate) fn compile(kernel: &'static Kernel, device: &Device, key: &[u64], schedule: Option<Schedule>) -> Result<usize> {
    let compile = || match device.backend() {
        Backend::Cpu => {
            let is_new = !kernel.has_program(key);
            let program = kernel.on_cpu(key)?;
            if is_new {
                charge(kernel.name(), program.code_bytes())?;
            }
            Ok(program.scratch_bytes())
        }
        Backend::Sim(sim) => compile_for_gpu(kernel, &SimGpu { device: *device, sim }, key, schedule),
        Backend::Cuda(cuda) => {
            let stream = device.stream().queue().ok_or(Error::NoStream { device: *device })?;
            compile_for_gpu(kernel, &CudaGpu { device: *device, cuda, stream, overlaps: false }, key, schedule)
        }
    };
    // A defect of the compiler is then an error of one package.
    catch_unwind(AssertUnwindSafe(compile)).unwrap_or_else(|_| Err(kernel.crashed(key)))
}

fn compile_for_gpu(kernel: &Kernel, gpu: &impl Gpu, key: &[u64], schedule: Option<Schedule>) -> Result<usize> {
    if kernel.table(gpu).loaded(key, schedule).is_none() {
        charge(kernel.name(), BYTES_PER_TEXT * kernel.ir().len())?;
    }
    // The words of the launches are not known yet, so any of them may need any entry.
    gpu.load_entries(kernel.on_gpu(gpu, key, schedule)?)?;
    Ok(0)
}

/// The values that a region has at most once it is specialised. A static loop whose bounds depend on more than the constants counts as the longest one.
fn most_values(func: &ir::Function, region: ir::Region, bindings: &Bindings) -> usize {
    let number = |expr: &ir::ConstExpr| {
        let bound = |name: &str| bindings.consts.iter().find(|(known, _)| **known == *name).map(|(_, value)| ir::ConstExpr::Int(*value));
        expr.evaluate(&bound).ok()?.as_int()
    };
    let mut values = 0usize;
    for inst in &func.region(region).insts {
        let data = func.inst(*inst);
        let mut inner = 0usize;
        data.op.for_each_region(&mut |region| {
            let params = func.region(region).params.len();
            inner = inner.saturating_add(params).saturating_add(most_values(func, region, bindings));
        });
        if let Op::StaticFor { start, end, .. } = &data.op {
            let iterations = number(start).zip(number(end)).map(|(start, end)| usize::try_from(end.saturating_sub(start)).unwrap_or(0));
            inner = inner.saturating_mul(iterations.unwrap_or(usize::MAX));
        }
        values = values.saturating_add(1 + data.results.len()).saturating_add(inner);
    }
    values
}
