//! Devices, which hold tensors and run kernels: a CUDA GPU, the CPU, or a simulated GPU.

pub(crate) mod driver;
pub(crate) mod event;
pub(crate) mod stream;

mod cuda;
mod events;
mod name;

use std::fmt;
use std::sync::{Arc, OnceLock};

use cudarc::driver::CudaContext;

pub(crate) use cuda::Cuda;
pub(crate) use events::PooledEvent;

use crate::replay::{self, Forbidden};
use crate::sim::Sim;
use crate::{Error, Result, Stream};
use driver::check_cudarc;

/// A CUDA GPU, the CPU, or a simulated GPU. Copying a `Device` copies a pointer; the device itself is opened once per process.
///
/// Every device has a default stream, [`Device::stream`]. On the CPU and on a simulated GPU, all work is complete when a call returns.
///
/// ```
/// # use kernel_runtime::{Device, Result};
/// # fn main() -> Result<()> {
/// let device = Device::default()?; // the first CUDA GPU, else the CPU
/// let x = device.tensor(&[1.0f32, 2.0, 3.0])?;
/// assert_eq!(x.to_vec()?, [1.0, 2.0, 3.0]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy)]
pub struct Device(&'static Inner);

struct Inner {
    backend: Backend,
    stream: OnceLock<Stream>,
}

/// The implementation of a device.
pub(crate) enum Backend {
    Cpu,
    Cuda(Cuda),
    #[cfg_attr(not(feature = "sim"), expect(dead_code, reason = "there is no simulator, so nobody makes one"))]
    Sim(Sim),
}

static CPU: Inner = Inner { backend: Backend::Cpu, stream: OnceLock::new() };

impl Device {
    /// The CUDA GPU with this number. The first call opens its primary context, which other libraries share.
    ///
    /// # Errors
    /// [`Error::NoDriver`], [`Error::NoDevice`], or a CUDA driver error.
    pub fn cuda(ordinal: usize) -> Result<Device> {
        cuda::device(ordinal)
    }

    /// The CPU.
    pub fn cpu() -> Device {
        Device(&CPU)
    }

    /// Makes a device, which lives as long as the process: kernels and tensors refer to it from statics.
    pub(crate) fn leak(backend: Backend) -> Device {
        Device(Box::leak(Box::new(Inner { backend, stream: OnceLock::new() })))
    }

    /// The number of CUDA GPUs; 0 without a driver.
    pub fn cuda_count() -> usize {
        driver::load().map_or(0, |driver| driver.device_count)
    }

    /// Returns whether the device is a CUDA GPU.
    pub fn is_cuda(&self) -> bool {
        matches!(self.backend(), Backend::Cuda(_))
    }

    /// Returns whether the device is the CPU.
    pub fn is_cpu(&self) -> bool {
        matches!(self.backend(), Backend::Cpu)
    }

    /// Returns whether the device is a simulated GPU, which requires the feature `sim`.
    pub fn is_sim(&self) -> bool {
        matches!(self.backend(), Backend::Sim(_))
    }

    /// The number of a CUDA GPU; `None` for other devices.
    pub fn ordinal(&self) -> Option<usize> {
        self.cuda_info().map(|cuda| cuda.ordinal)
    }

    /// The vendor's name of the GPU, such as `NVIDIA H200`; `simulated H200 (sm_90a)` for a simulated GPU; `CPU` for the CPU.
    pub fn name(&self) -> &'static str {
        match self.backend() {
            Backend::Cpu => "CPU",
            Backend::Cuda(cuda) => &cuda.name,
            Backend::Sim(sim) => sim.name(),
        }
    }

    /// The compute capability of a GPU, real or simulated: `(9, 0)` for Hopper. `None` for the CPU.
    pub fn compute_capability(&self) -> Option<(i32, i32)> {
        match self.backend() {
            Backend::Cpu => None,
            Backend::Cuda(cuda) => Some(cuda.compute_capability),
            Backend::Sim(sim) => Some(sim.compute_capability()),
        }
    }

    /// The number of programs that can run in parallel: the multiprocessors of a GPU, or the threads of the CPU. A simulated GPU has as many as the
    /// GPU that it simulates.
    pub fn multiprocessors(&self) -> usize {
        match self.backend() {
            Backend::Cpu => rayon::current_num_threads(),
            Backend::Cuda(cuda) => cuda.multiprocessors as usize,
            Backend::Sim(sim) => sim.multiprocessors(),
        }
    }

    /// The free and the total memory of a GPU, in bytes. `None` for the CPU.
    ///
    /// Memory that dropped tensors left in the driver's pool counts as used, although new tensors are allocated from it first.
    ///
    /// # Errors
    /// A CUDA driver error.
    pub fn memory(&self) -> Result<Option<(usize, usize)>> {
        match self.backend() {
            Backend::Cpu => Ok(None),
            Backend::Cuda(cuda) => cuda.memory().map(Some),
            Backend::Sim(sim) => Ok(Some(sim.memory())),
        }
    }

    /// The default stream. New tensors are made on it, and launches that name no stream use it.
    pub fn stream(&self) -> &'static Stream {
        self.0.stream.get_or_init(|| Stream::new(*self, self.cuda_info().map(|cuda| cuda.default_stream.clone())))
    }

    /// Makes another stream, whose work runs concurrently with that of the default stream.
    ///
    /// # Errors
    /// A CUDA driver error.
    pub fn new_stream(&self) -> Result<Stream> {
        let stream = match self.cuda_info() {
            Some(cuda) => Some(check_cudarc(cuda.context.new_stream(), "make a stream")?),
            None => None,
        };
        Ok(Stream::new(*self, stream))
    }

    /// Waits for all work on all streams of this device.
    ///
    /// # Errors
    /// [`Error::InCapture`], or [`Error::Asynchronous`] if that work failed.
    pub fn synchronize(&self) -> Result<()> {
        replay::forbid(Forbidden::Waiting)?;
        self.cuda_info().map_or(Ok(()), Cuda::synchronize)
    }

    /// cudarc's context of a CUDA GPU; `None` for other devices.
    pub fn cuda_context(&self) -> Option<&'static Arc<CudaContext>> {
        self.cuda_info().map(|cuda| &cuda.context)
    }

    #[inline]
    pub(crate) fn backend(&self) -> &'static Backend {
        &self.0.backend
    }

    /// The CUDA GPU. Only this kind of device has streams to wait for; on the others, all work is complete when a call returns.
    #[inline]
    pub(crate) fn cuda_info(&self) -> Option<&'static Cuda> {
        match self.backend() {
            Backend::Cuda(cuda) => Some(cuda),
            Backend::Cpu | Backend::Sim(_) => None,
        }
    }

    /// The device to which a context of cudarc's belongs.
    pub(crate) fn of_context(context: &CudaContext, what: &'static str) -> Result<Device> {
        let device = Device::cuda(context.ordinal())?;
        match device.cuda_info() {
            Some(cuda) if cuda.context.cu_ctx() == context.cu_ctx() => Ok(device),
            _ => Err(Error::ForeignContext { what, ordinal: context.ordinal() }),
        }
    }
}

impl PartialEq for Device {
    fn eq(&self, other: &Device) -> bool {
        std::ptr::eq(self.0, other.0)
    }
}

impl Eq for Device {}

impl std::hash::Hash for Device {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        std::ptr::hash(self.0, state);
    }
}

/// Writes the name that [`Device::parse`] reads: `cpu`, `cuda:0` or `sim:sm_90a`.
impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.backend() {
            Backend::Cpu => f.write_str("cpu"),
            Backend::Cuda(cuda) => write!(f, "cuda:{}", cuda.ordinal),
            Backend::Sim(sim) => write!(f, "sim:{}", sim.target()),
        }
    }
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gpu_that_is_not_there_is_an_error_not_a_panic() {
        let count = Device::cuda_count();
        match Device::cuda(count) {
            Err(Error::NoDriver) => assert_eq!(count, 0),
            Err(Error::NoDevice { ordinal, count: seen }) => assert_eq!((ordinal, seen), (count, count)),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_cpu_has_a_name_and_no_number() {
        let cpu = Device::cpu();
        assert_eq!((cpu.to_string(), cpu.ordinal(), cpu.name()), ("cpu".to_owned(), None, "CPU"));
        assert!(cpu.is_cpu() && cpu.compute_capability().is_none() && cpu.memory().unwrap().is_none());
        cpu.synchronize().unwrap();
    }
}
