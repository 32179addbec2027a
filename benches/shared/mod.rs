//! Tensors in the memory of the peers' process, by CUDA's IPC.

use std::error::Error;
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};

use galatea::cudarc::driver::sys;
use galatea::{Device, Element, Tensor};
use serde_json::Value;

/// A tensor whose memory belongs to the peers' process: both sides time the same addresses of the GPU's memory.
///
/// Each side waits for its own work before the other one runs.
pub(crate) struct Shared<T: Element> {
    tensor: ManuallyDrop<Tensor<T>>,
    /// The start of the peers' allocation, in which the tensor lies.
    mapping: sys::CUdeviceptr,
}

impl<T: Element> Shared<T> {
    /// Opens a tensor that the peers described as `{"handle": "64 bytes in hexadecimal", "offset": bytes, "len": elements}`.
    pub(crate) fn open(device: &Device, described: &Value) -> Result<Shared<T>, Box<dyn Error>> {
        let number = |field: &str| described[field].as_u64().ok_or_else(|| format!("the peers' tensor has no `{field}`: {described}"));
        let (offset, len) = (number("offset")?, usize::try_from(number("len")?)?);
        let handle = sys::CUipcMemHandle { reserved: handle_bytes(described["handle"].as_str().unwrap_or_default())? };
        let stream = device.stream().cuda_stream().ok_or("the device is no CUDA GPU")?;
        stream.context().bind_to_thread()?;
        let mut mapping = 0;
        // SAFETY: the handle was given out by `cuIpcGetMemHandle` in the peers' process, which keeps the memory until the next work.
        unsafe { sys::cuIpcOpenMemHandle_v2(&raw mut mapping, handle, OPEN_FLAGS).result()? };
        // SAFETY: the mapping has `len` elements at `offset`. `drop` keeps the slice from freeing them.
        let slice = unsafe { stream.upgrade_device_ptr::<T>(mapping + offset, len) };
        Ok(Shared { tensor: ManuallyDrop::new(Tensor::from_cuda_slice(slice)?), mapping })
    }
}

/// `CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS`, the only flag that there is; the driver asks for it.
const OPEN_FLAGS: u32 = 1;

fn handle_bytes(text: &str) -> Result<[std::ffi::c_char; 64], Box<dyn Error>> {
    let bytes: Vec<_> = text
        .as_bytes()
        .chunks(2)
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair)?, 16).map_err(Box::<dyn Error>::from))
        .collect::<Result<_, _>>()?;
    let bytes: [u8; 64] = bytes.try_into().map_err(|_| format!("`{text}` is no IPC handle"))?;
    Ok(bytes.map(|byte| std::ffi::c_char::from_ne_bytes([byte])))
}

impl<T: Element> Deref for Shared<T> {
    type Target = Tensor<T>;

    fn deref(&self) -> &Tensor<T> {
        &self.tensor
    }
}

impl<T: Element> DerefMut for Shared<T> {
    fn deref_mut(&mut self) -> &mut Tensor<T> {
        &mut self.tensor
    }
}

impl<T: Element> Drop for Shared<T> {
    fn drop(&mut self) {
        // SAFETY: nothing uses the field after `drop`.
        let tensor = unsafe { ManuallyDrop::take(&mut self.tensor) };
        let close = || -> Result<(), Box<dyn Error>> {
            let slice = tensor.into_cuda_slice()?;
            let stream = slice.stream().clone();
            slice.leak();
            stream.synchronize()?;
            // SAFETY: the mapping was opened by `open`, and no work uses it any more.
            unsafe { sys::cuIpcCloseMemHandle(self.mapping).result()? };
            Ok(())
        };
        if let Err(error) = close() {
            eprintln!("a tensor of the peers was not closed: {error}");
        }
    }
}
