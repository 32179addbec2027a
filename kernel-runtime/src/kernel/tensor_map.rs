//! Tensor maps of launches: how the CUDA driver is asked for them. The simulator makes its own, by the same numbers.

use std::ffi::c_void;
use std::sync::OnceLock;

use cudarc::driver::sys::{self, CUresult, CUtensorMapDataType as Element};
use kernel_lang::dtype::Dtype;
use kernel_lang::launch_value::persistent_entry::{MAP_BYTES, MOST_AXES, MappedTensor, TensorMap};

use crate::device::driver::procedure;

/// A tensor map, as a kernel takes it. Its bytes are opaque.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub(crate) struct EncodedMap(pub(crate) [u8; MAP_BYTES]);

/// A box takes every element.
pub(crate) const ELEMENT_STRIDES: [u32; MOST_AXES] = [1; MOST_AXES];

/// The driver's number of an element type; `tf32` is whether copies round `f32`. Other copies change no bits, so all types of 8 bits are alike.
pub(crate) fn element_number(dtype: Dtype, tf32: bool) -> u32 {
    let element = match dtype {
        Dtype::F32 if tf32 => Element::CU_TENSOR_MAP_DATA_TYPE_TFLOAT32,
        Dtype::Bool | Dtype::I8 | Dtype::U8 | Dtype::F8E4M3 | Dtype::F8E5M2 => Element::CU_TENSOR_MAP_DATA_TYPE_UINT8,
        Dtype::I16 | Dtype::U16 => Element::CU_TENSOR_MAP_DATA_TYPE_UINT16,
        Dtype::U32 => Element::CU_TENSOR_MAP_DATA_TYPE_UINT32,
        Dtype::I32 => Element::CU_TENSOR_MAP_DATA_TYPE_INT32,
        Dtype::U64 => Element::CU_TENSOR_MAP_DATA_TYPE_UINT64,
        Dtype::I64 => Element::CU_TENSOR_MAP_DATA_TYPE_INT64,
        Dtype::F16 => Element::CU_TENSOR_MAP_DATA_TYPE_FLOAT16,
        Dtype::F32 => Element::CU_TENSOR_MAP_DATA_TYPE_FLOAT32,
        Dtype::F64 => Element::CU_TENSOR_MAP_DATA_TYPE_FLOAT64,
        Dtype::Bf16 => Element::CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
    };
    element as u32
}

/// The driver's number of a swizzle inside of so many bytes.
pub(crate) fn swizzle_number(bytes: u32) -> u32 {
    let swizzle = match bytes {
        32 => sys::CUtensorMapSwizzle::CU_TENSOR_MAP_SWIZZLE_32B,
        64 => sys::CUtensorMapSwizzle::CU_TENSOR_MAP_SWIZZLE_64B,
        128 => sys::CUtensorMapSwizzle::CU_TENSOR_MAP_SWIZZLE_128B,
        _ => sys::CUtensorMapSwizzle::CU_TENSOR_MAP_SWIZZLE_NONE,
    };
    swizzle as u32
}

/// `cuTensorMapEncodeTiled`. Its enumerations have the size of a number.
type Encode = unsafe extern "C" fn(
    map: *mut EncodedMap,
    element: u32,
    rank: u32,
    address: *mut c_void,
    extents: *const u64,
    byte_strides: *const u64,
    block: *const u32,
    element_strides: *const u32,
    interleave: u32,
    swizzle: u32,
    promotion: u32,
    fill: u32,
) -> CUresult;

/// Asks the driver for the tensor map of a tensor. `None` if the driver is too old for tensor maps, or refuses this one.
pub(super) fn encode(map: &TensorMap, tensor: &MappedTensor) -> Option<EncodedMap> {
    static ENCODE: OnceLock<Option<Encode>> = OnceLock::new();
    let encode = (*ENCODE.get_or_init(|| {
        let found = procedure(c"cuTensorMapEncodeTiled", 12_000).ok()?;
        // SAFETY: the driver returned the function of that name, which has this signature.
        Some(unsafe { std::mem::transmute::<*mut c_void, Encode>(found) })
    }))?;
    let mut encoded = EncodedMap([0; MAP_BYTES]);
    let MappedTensor { address, extents, byte_strides } = tensor;
    // SAFETY: there are as many extents, of the tensor and the box, as the rank, and one stride less; the driver reads no others. It stores the address, and
    // accesses no memory there.
    let code = unsafe {
        encode(
            &mut encoded,
            element_number(map.dtype, map.tf32),
            extents.len() as u32,
            std::ptr::without_provenance_mut(*address as usize),
            extents.as_ptr(),
            byte_strides.as_ptr(),
            map.block.as_ptr(),
            ELEMENT_STRIDES.as_ptr(),
            sys::CUtensorMapInterleave::CU_TENSOR_MAP_INTERLEAVE_NONE as u32,
            swizzle_number(map.swizzle),
            sys::CUtensorMapL2promotion::CU_TENSOR_MAP_L2_PROMOTION_L2_256B as u32,
            sys::CUtensorMapFloatOOBfill::CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE as u32,
        )
    };
    (code == CUresult::CUDA_SUCCESS).then_some(encoded)
}

#[cfg(all(test, feature = "sim"))]
mod tests {
    use super::*;

    #[test]
    fn the_simulator_has_the_numbers_of_the_driver() {
        use kernel_sim::tensor_map::{ElementType, Swizzle};
        for dtype in Dtype::ALL {
            let element = ElementType::from_number(element_number(dtype, false)).unwrap();
            assert_eq!(element.bytes() as usize, dtype.bytes(), "{dtype}");
            assert_eq!(element.is_float(), Dtype::FLOATS.contains(&dtype), "{dtype}");
        }
        assert_eq!(ElementType::from_number(element_number(Dtype::F32, true)), Some(ElementType::Tf32));
        assert_eq!([32, 64, 128].map(|bytes| Swizzle::from_number(swizzle_number(bytes)).unwrap().span()), [32, 64, 128]);
        assert_eq!(Swizzle::from_number(swizzle_number(0)), Some(Swizzle::None));
    }
}
