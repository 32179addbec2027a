//! Tensor maps. Their bytes are those of the simulator, with all checks of the interface.

use std::ffi::c_void;

use cudarc::driver::sys::{CUresult, CUtensorMap};
use kernel_sim::TensorMap;
use kernel_sim::tensor_map::{ElementType, Fill, Interleave, MAX_RANK, Promotion, Swizzle};

use crate::call::call;

/// The alignment of a tensor map in host memory.
const ALIGNMENT: usize = 64;

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn cuTensorMapEncodeTiled(
    map: *mut CUtensorMap,
    element: u32,
    rank: u32,
    address: *mut c_void,
    extents: *const u64,
    strides: *const u64,
    box_extents: *const u32,
    element_strides: *const u32,
    interleave: u32,
    swizzle: u32,
    promotion: u32,
    fill: u32,
) -> CUresult {
    call(|state| {
        state.may_fail("cuTensorMapEncodeTiled")?;
        let invalid = CUresult::CUDA_ERROR_INVALID_VALUE;
        let rank = rank as usize;
        if map.is_null() || !map.addr().is_multiple_of(ALIGNMENT) || !(1..=MAX_RANK).contains(&rank) {
            return Err(invalid);
        }
        // SAFETY: the caller passes as many extents, of the tensor and the box, and element strides as the rank, and one stride less.
        let encoded = unsafe {
            TensorMap {
                element: ElementType::from_number(element).ok_or(invalid)?,
                global_address: address.addr() as u64,
                extents: std::slice::from_raw_parts(extents, rank).to_vec(),
                strides: if rank > 1 { std::slice::from_raw_parts(strides, rank - 1).to_vec() } else { Vec::new() },
                box_extents: std::slice::from_raw_parts(box_extents, rank).to_vec(),
                element_strides: std::slice::from_raw_parts(element_strides, rank).to_vec(),
                interleave: Interleave::from_number(interleave).ok_or(invalid)?,
                swizzle: Swizzle::from_number(swizzle).ok_or(invalid)?,
                promotion: Promotion::from_number(promotion).ok_or(invalid)?,
                fill: Fill::from_number(fill).ok_or(invalid)?,
            }
        };
        let bytes = encoded.encode().map_err(|reason| {
            eprintln!("simulated driver: {reason}");
            invalid
        })?;
        state.encoded += 1;
        // SAFETY: the caller passes a pointer that is valid for writes; a tensor map has so many bytes.
        unsafe { map.cast::<[u8; kernel_sim::tensor_map::TENSOR_MAP_BYTES]>().write(bytes) };
        Ok(())
    })
}
