//! The encoding of tensor maps, and the fields that `tensormap.replace` writes.

use super::{ElementType, Fill, Interleave, MARK, MAX_RANK, Promotion, Swizzle, TENSOR_MAP_BYTES, TensorMap};

const RANK: usize = 4;
const ELEMENT: usize = 5;
const INTERLEAVE: usize = 6;
const SWIZZLE: usize = 7;
const PROMOTION: usize = 8;
const FILL: usize = 9;
const ADDRESS: usize = 16;
const EXTENTS: usize = 24;
const STRIDES: usize = 48;
const BOX: usize = 80;
const ELEMENT_STRIDES: usize = 90;

/// A field that `tensormap.replace` can write. Fields with a number belong to that dimension.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Field {
    GlobalAddress,
    Rank,
    BoxExtent(usize),
    Extent(usize),
    Stride(usize),
    ElementStride(usize),
    Element,
    Interleave,
    Swizzle,
    Fill,
}

impl Field {
    /// Writes a field of an encoded map, from the operand of `tensormap.replace`. For the rank this operand is the rank less 1.
    pub(crate) fn replace(self, bytes: &mut [u8; TENSOR_MAP_BYTES], value: u64) {
        let low = value as u8;
        match self {
            Field::GlobalAddress => put(bytes, ADDRESS, &value.to_le_bytes()),
            Field::Rank => bytes[RANK] = low.wrapping_add(1),
            Field::BoxExtent(dimension) => put(bytes, BOX + 2 * dimension, &(value as u16).to_le_bytes()),
            Field::Extent(dimension) => put(bytes, EXTENTS + 4 * dimension, &(value as u32).wrapping_sub(1).to_le_bytes()),
            Field::Stride(dimension) => put(bytes, STRIDES + 8 * dimension, &value.to_le_bytes()),
            Field::ElementStride(dimension) => bytes[ELEMENT_STRIDES + dimension] = low,
            Field::Element => bytes[ELEMENT] = low,
            Field::Interleave => bytes[INTERLEAVE] = low,
            Field::Swizzle => bytes[SWIZZLE] = low,
            Field::Fill => bytes[FILL] = low,
        }
    }
}

/// Encodes a valid map.
pub(super) fn encode(map: &TensorMap) -> [u8; TENSOR_MAP_BYTES] {
    let mut bytes = [0; TENSOR_MAP_BYTES];
    put(&mut bytes, 0, &MARK);
    let flags = [map.element as u8, map.interleave as u8, map.swizzle as u8, map.promotion as u8, map.fill as u8];
    bytes[RANK] = map.rank() as u8;
    put(&mut bytes, ELEMENT, &flags);
    put(&mut bytes, ADDRESS, &map.global_address.to_le_bytes());
    for dimension in 0..map.rank() {
        Field::Extent(dimension).replace(&mut bytes, map.extents[dimension]);
        Field::BoxExtent(dimension).replace(&mut bytes, u64::from(map.box_extents[dimension]));
        Field::ElementStride(dimension).replace(&mut bytes, u64::from(map.element_strides[dimension]));
    }
    for (dimension, &stride) in map.strides.iter().enumerate() {
        Field::Stride(dimension).replace(&mut bytes, stride);
    }
    bytes
}

/// Decodes a map without checking it.
pub(super) fn decode(bytes: &[u8; TENSOR_MAP_BYTES]) -> Result<TensorMap, String> {
    if bytes[..4] != MARK {
        return Err("these 128 bytes are no tensor map".to_owned());
    }
    let rank = usize::from(bytes[RANK]);
    if !(1..=MAX_RANK).contains(&rank) {
        return Err(format!("a tensor map has 1 to {MAX_RANK} dimensions, not {rank}"));
    }
    let number = |offset: usize| u32::from(bytes[offset]);
    let missing = |what: &str, offset: usize| format!("{} is no {what} of a tensor map", bytes[offset]);
    Ok(TensorMap {
        element: ElementType::from_number(number(ELEMENT)).ok_or_else(|| missing("element type", ELEMENT))?,
        global_address: word(bytes, ADDRESS),
        extents: (0..rank).map(|dimension| (word(bytes, EXTENTS + 4 * dimension) & 0xffff_ffff) + 1).collect(),
        strides: (0..rank - 1).map(|dimension| word(bytes, STRIDES + 8 * dimension)).collect(),
        box_extents: (0..rank).map(|dimension| (word(bytes, BOX + 2 * dimension) & 0xffff) as u32).collect(),
        element_strides: (0..rank).map(|dimension| number(ELEMENT_STRIDES + dimension)).collect(),
        interleave: Interleave::from_number(number(INTERLEAVE)).ok_or_else(|| missing("interleave", INTERLEAVE))?,
        swizzle: Swizzle::from_number(number(SWIZZLE)).ok_or_else(|| missing("swizzle", SWIZZLE))?,
        promotion: Promotion::from_number(number(PROMOTION)).ok_or_else(|| missing("L2 promotion", PROMOTION))?,
        fill: Fill::from_number(number(FILL)).ok_or_else(|| missing("fill", FILL))?,
    })
}

fn put(bytes: &mut [u8; TENSOR_MAP_BYTES], offset: usize, part: &[u8]) {
    bytes[offset..offset + part.len()].copy_from_slice(part);
}

/// Eight bytes from this offset on.
fn word(bytes: &[u8; TENSOR_MAP_BYTES], offset: usize) -> u64 {
    (0..8).fold(0, |word, byte| word | u64::from(bytes[offset + byte]) << (8 * byte))
}

#[cfg(test)]
mod tests {
    use super::super::tests::matrix;
    use super::*;

    #[test]
    fn a_replaced_field_is_decoded() {
        let mut bytes = matrix().encode().unwrap();
        Field::GlobalAddress.replace(&mut bytes, 0x20_0000_0000);
        Field::Extent(1).replace(&mut bytes, 7);
        Field::Stride(0).replace(&mut bytes, 320);
        let expected = TensorMap { global_address: 0x20_0000_0000, extents: vec![72, 7], strides: vec![320], ..matrix() };
        assert_eq!(TensorMap::decode(&bytes), Ok(expected));
        Field::Swizzle.replace(&mut bytes, 9);
        assert_eq!(TensorMap::decode(&bytes), Err("9 is no swizzle of a tensor map".to_owned()));
    }
}
