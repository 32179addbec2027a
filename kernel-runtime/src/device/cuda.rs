//! The properties of a CUDA GPU, and how it is opened.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use cudarc::driver::sys::{self, CUdevice_attribute as Attribute};
use cudarc::driver::{CudaContext, CudaStream, DriverError, result};
use kernel_lang::occupancy::Multiprocessor;

use super::events::Events;
use super::{Backend, Device};
use crate::device::driver::{self, check, check_cudarc};
use crate::tensor::memory::Left;
use crate::{Error, Result};

/// An opened CUDA GPU, with its properties.
pub(crate) struct Cuda {
    /// The only context of the library. Users get it too, so cudarc must track the uses of its slices, as safe code with a context relies on that.
    /// Tensors order their streams themselves (see `tensor::memory`), and pay nothing for the tracking.
    pub(crate) context: Arc<CudaContext>,
    pub(crate) ordinal: usize,
    pub(super) name: String,
    /// The major and the minor compute capability.
    pub(crate) compute_capability: (i32, i32),
    pub(crate) multiprocessors: u32,
    /// The maximum shared memory of one program, in bytes.
    pub(crate) shared_bytes: u32,
    /// What a multiprocessor has for its CTAs.
    pub(crate) multiprocessor: Multiprocessor,
    /// The size of the L2 cache, in bytes.
    pub(crate) cache_bytes: u32,
    pub(super) default_stream: Arc<CudaStream>,
    pub(super) events: Events,
    /// Memory that could not be freed yet.
    pub(crate) left: Left,
}

/// The device with this number. The first call opens it.
pub(super) fn device(ordinal: usize) -> Result<Device> {
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
    let cuda = open(ordinal)?;
    Ok(*slot.get_or_init(|| Device::leak(Backend::Cuda(cuda))))
}

impl Cuda {
    /// The free and the total memory, in bytes.
    pub(super) fn memory(&self) -> Result<(usize, usize)> {
        self.bind()?;
        check_cudarc(result::mem_get_info(), "ask for free memory")
    }

    /// Waits for all work on all streams.
    pub(crate) fn synchronize(&self) -> Result<()> {
        self.bind()?;
        // SAFETY: the context is current.
        check(unsafe { sys::cuCtxSynchronize() }, "wait for the device")
    }

    /// Makes the persisting lines of the L2 cache normal lines. Takes effect when the call returns, independently of queued work.
    pub(crate) fn reset_kept_lines(&self) -> Result<()> {
        self.bind()?;
        // SAFETY: the context is current.
        match unsafe { sys::cuCtxResetPersistingL2Cache() } {
            // A device that does not support persisting lines has none.
            sys::CUresult::CUDA_ERROR_NOT_SUPPORTED => Ok(()),
            code => check(code, "let go of lines of the L2 cache"),
        }
    }

    /// Makes the device's context current on the calling thread. Cheap if it is current already.
    #[inline]
    pub(crate) fn bind(&self) -> Result<()> {
        driver::bind(self.context.cu_ctx())
    }
}

fn open(ordinal: usize) -> Result<Cuda> {
    let doing = "open the device";
    let context = check_cudarc(CudaContext::new(ordinal), doing)?;
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
        shared_bytes: read(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?,
        multiprocessor: Multiprocessor {
            ctas: read(Attribute::CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR)?,
            warps: read(Attribute::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR)? / 32,
            registers: read(Attribute::CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR)?,
            shared_bytes: read(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR)?,
        },
        cache_bytes: read(Attribute::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)?,
        // A new stream instead of the null stream: it can be captured, and does not wait implicitly for other streams.
        default_stream: check_cudarc(context.new_stream(), "make the default stream")?,
        context,
        events: Events::default(),
        left: Left::default(),
    })
}

/// Makes the memory pool keep all freed memory. By default, the pool returns the memory to the system at every synchronisation, and requests it
/// again.
fn keep_freed_memory(context: &CudaContext, doing: &'static str) -> Result<()> {
    if !context.has_async_alloc() {
        return Ok(());
    }
    let set = || {
        // SAFETY: the device is open, and the attribute is a u64.
        unsafe {
            let pool = result::device::get_default_mem_pool(context.cu_device())?;
            let mut bytes = u64::MAX;
            let threshold = sys::CUmemPool_attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD;
            result::mem_pool::set_attribute(pool, threshold, (&raw mut bytes).cast())
        }
    };
    check_cudarc::<()>(set() as Result<(), DriverError>, doing)
}
