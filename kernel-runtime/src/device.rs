//! Where tensors live and kernels run: one CUDA GPU, or the CPU.

use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use cudarc::driver::sys::{self, CUdevice_attribute as Attribute};
use cudarc::driver::{CudaContext, CudaStream, DriverError, result};

use crate::driver::{self, check, check_cudarc};
use crate::{Error, Result, Stream};

/// A CUDA GPU or the CPU. Copying it is copying a pointer; the device itself is opened once in a process.
///
/// Every device has a default stream, [`Device::stream`]. On the CPU everything is done when the call returns.
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
    cuda: Option<Cuda>,
    stream: OnceLock<Stream>,
}

/// What is known of an opened GPU.
pub(crate) struct Cuda {
    pub(crate) context: Arc<CudaContext>,
    pub(crate) ordinal: usize,
    name: String,
    /// Major and minor.
    pub(crate) compute_capability: (i32, i32),
    multiprocessors: u32,
    pub(crate) l2_bytes: usize,
    /// The most shared memory that one program can ask for.
    pub(crate) shared_bytes: u32,
    default_stream: Arc<CudaStream>,
}

/// A GPU, and what is known of it.
#[derive(Clone, Copy)]
pub(crate) struct Gpu {
    pub(crate) device: Device,
    pub(crate) cuda: &'static Cuda,
}

static CPU: Inner = Inner { cuda: None, stream: OnceLock::new() };

impl Device {
    /// The first CUDA GPU, or the CPU where there is no driver or no GPU.
    ///
    /// # Errors
    /// A GPU that is there and cannot be opened is an error, not a reason to go slowly in silence.
    #[expect(clippy::should_implement_trait, reason = "opening a device can fail")]
    pub fn default() -> Result<Device> {
        match Device::cuda(0) {
            Err(Error::NoDriver | Error::NoDevice { .. }) => Ok(Device::cpu()),
            device => device,
        }
    }

    /// The CUDA GPU with this number, opened at the first call (its primary context, which other libraries share).
    ///
    /// # Errors
    /// [`Error::NoDriver`], [`Error::NoDevice`], or what the driver says.
    pub fn cuda(ordinal: usize) -> Result<Device> {
        static OPENED: OnceLock<Box<[OnceLock<Device>]>> = OnceLock::new();
        static OPENING: Mutex<()> = Mutex::new(());

        let count = driver::load()?.device_count;
        let opened = OPENED.get_or_init(|| (0..count).map(|_| OnceLock::new()).collect());
        let slot = opened.get(ordinal).ok_or(Error::NoDevice { ordinal, count })?;
        if let Some(device) = slot.get() {
            return Ok(*device);
        }
        let _guard = OPENING.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(device) = slot.get() {
            return Ok(*device);
        }
        let inner = Inner { cuda: Some(open(ordinal)?), stream: OnceLock::new() };
        // A device lives as long as the process: kernels and tensors point to it from statics.
        Ok(*slot.get_or_init(|| Device(Box::leak(Box::new(inner)))))
    }

    /// The CPU.
    pub fn cpu() -> Device {
        Device(&CPU)
    }

    /// How many CUDA GPUs there are: 0 without a driver.
    pub fn cuda_count() -> usize {
        driver::load().map_or(0, |driver| driver.device_count)
    }

    /// Is it a GPU?
    pub fn is_cuda(&self) -> bool {
        self.0.cuda.is_some()
    }

    /// Is it the CPU?
    pub fn is_cpu(&self) -> bool {
        !self.is_cuda()
    }

    /// The number of a GPU; none for the CPU.
    pub fn ordinal(&self) -> Option<usize> {
        self.cuda_info().map(|cuda| cuda.ordinal)
    }

    /// The maker's name of the GPU, such as `NVIDIA H200`, or `CPU`.
    pub fn name(&self) -> &'static str {
        self.cuda_info().map_or("CPU", |cuda| &cuda.name)
    }

    /// The compute capability of a GPU: `(9, 0)` for Hopper. None for the CPU.
    pub fn compute_capability(&self) -> Option<(i32, i32)> {
        self.cuda_info().map(|cuda| cuda.compute_capability)
    }

    /// How many programs can truly run side by side: multiprocessors of a GPU, threads of the CPU.
    pub fn multiprocessors(&self) -> usize {
        self.cuda_info().map_or_else(rayon::current_num_threads, |cuda| cuda.multiprocessors as usize)
    }

    /// Free and total bytes of a GPU's memory. None for the CPU.
    ///
    /// Memory that freed tensors left in the driver's pool counts as used, though the next tensor gets it first.
    ///
    /// # Errors
    /// What the driver says.
    pub fn memory(&self) -> Result<Option<(usize, usize)>> {
        let Some(cuda) = self.cuda_info() else { return Ok(None) };
        cuda.bind()?;
        check_cudarc(result::mem_get_info(), "ask for free memory").map(Some)
    }

    /// The default stream: what new tensors are made on and where a launch goes that names no stream.
    pub fn stream(&self) -> &'static Stream {
        self.0.stream.get_or_init(|| Stream::new(*self, self.cuda_info().map(|cuda| cuda.default_stream.clone())))
    }

    /// Another stream, whose work runs beside the default stream's.
    ///
    /// # Errors
    /// What the driver says.
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
    /// A failure of that work: [`Error::Asynchronous`].
    pub fn synchronize(&self) -> Result<()> {
        let Some(cuda) = self.cuda_info() else { return Ok(()) };
        cuda.bind()?;
        // SAFETY: the context is current.
        check(unsafe { sys::cuCtxSynchronize() }, "wait for the device")
    }

    /// cudarc's context of a GPU. None for the CPU.
    pub fn cuda_context(&self) -> Option<&'static Arc<CudaContext>> {
        self.cuda_info().map(|cuda| &cuda.context)
    }

    #[inline]
    pub(crate) fn cuda_info(&self) -> Option<&'static Cuda> {
        self.0.cuda.as_ref()
    }

    /// The device that a context of cudarc's belongs to.
    pub(crate) fn of_context(context: &CudaContext, what: &'static str) -> Result<Device> {
        let device = Device::cuda(context.ordinal())?;
        match device.cuda_info() {
            Some(cuda) if cuda.context.cu_ctx() == context.cu_ctx() => Ok(device),
            _ => Err(Error::ForeignContext { what, ordinal: context.ordinal() }),
        }
    }
}

impl Cuda {
    /// Makes the device's context the calling thread's. Cheap when it is already.
    #[inline]
    pub(crate) fn bind(&self) -> Result<()> {
        let mut current = std::ptr::null_mut();
        // SAFETY: `current` is a valid place for the answer.
        check(unsafe { sys::cuCtxGetCurrent(&mut current) }, "ask for the current context")?;
        if current != self.context.cu_ctx() {
            // SAFETY: the context is retained as long as the process lives.
            check(unsafe { sys::cuCtxSetCurrent(self.context.cu_ctx()) }, "make a context current")?;
        }
        Ok(())
    }
}

fn open(ordinal: usize) -> Result<Cuda> {
    let doing = "open the device";
    let context = check_cudarc(CudaContext::new(ordinal), doing)?;
    // SAFETY: nothing is allocated yet, and tensors order their streams themselves (see `memory`).
    unsafe { context.disable_event_tracking() };
    keep_freed_memory(&context, doing)?;
    let read = |attribute| {
        let value = check_cudarc(context.attribute(attribute), "read an attribute of the device")?;
        Ok::<u32, Error>(u32::try_from(value).unwrap_or(0))
    };
    Ok(Cuda {
        ordinal,
        name: check_cudarc(context.name(), "read the name of the device")?,
        compute_capability: check_cudarc(context.compute_capability(), "read the compute capability")?,
        multiprocessors: read(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
        l2_bytes: read(Attribute::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)? as usize,
        shared_bytes: read(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?,
        // A stream of our own rather than the null stream: it can be captured, and it waits for nobody unasked.
        default_stream: check_cudarc(context.new_stream(), "make the default stream")?,
        context,
    })
}

/// The pool would give all freed memory back to the system at every synchronisation, and ask for it again.
fn keep_freed_memory(context: &CudaContext, doing: &'static str) -> Result<()> {
    if !context.has_async_alloc() {
        return Ok(());
    }
    let set = || {
        // SAFETY: the device is open; the attribute is a u64.
        unsafe {
            let pool = result::device::get_default_mem_pool(context.cu_device())?;
            let mut bytes = u64::MAX;
            let threshold = sys::CUmemPool_attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD;
            result::mem_pool::set_attribute(pool, threshold, (&raw mut bytes).cast())
        }
    };
    check_cudarc::<()>(set() as Result<(), DriverError>, doing)
}

impl PartialEq for Device {
    fn eq(&self, other: &Device) -> bool {
        std::ptr::eq(self.0, other.0)
    }
}

impl Eq for Device {}

impl std::hash::Hash for Device {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.ordinal().hash(state);
    }
}

/// `cpu` or `cuda:0`.
impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.ordinal() {
            Some(ordinal) => write!(f, "cuda:{ordinal}"),
            None => f.write_str("cpu"),
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
    fn there_is_always_a_device() {
        let device = Device::default().unwrap();
        assert_eq!(device.is_cuda(), Device::cuda_count() > 0);
        assert_eq!(device, Device::default().unwrap());
        assert!(device.multiprocessors() > 0);
    }

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
