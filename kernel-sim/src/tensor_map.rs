//! Tensor maps: the descriptors from which `cp.async.bulk.tensor` computes the addresses of a box of a tensor in global memory.
//!
//! The driver's encoding of the 128 bytes is undocumented. The simulator therefore uses its own encoding, with the same checks as the
//! driver's `cuTensorMapEncodeTiled`. Dimension 0 is the innermost; its elements are contiguous.
//!
//! | bytes | contents |
//! |---|---|
//! | 0..4 | a magic number that distinguishes a map from other bytes |
//! | 4..10 | rank, element type, interleave, swizzle, L2 promotion, fill |
//! | 16..24 | address |
//! | 24..44 | five extents less 1 |
//! | 48..80 | four strides |
//! | 80..90 | five extents of the box |
//! | 90..95 | five element strides |

mod fields;
mod rows;

pub(crate) use fields::Field;
pub(crate) use rows::BoxRow;

/// The size of a tensor map in bytes.
pub const TENSOR_MAP_BYTES: usize = 128;

/// The maximum number of dimensions of a tensor map.
pub const MAX_RANK: usize = 5;

const MARK: [u8; 4] = *b"tmap";

macro_rules! numbered {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $number:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum $name { $($(#[$variant_doc])* $variant = $number,)* }

        impl $name {
            /// The variant with this number in the driver's API.
            pub fn from_number(number: u32) -> Option<$name> {
                match number { $($number => Some($name::$variant),)* _ => None }
            }
        }
    };
}

numbered! {
    /// The element types of a tensor, with the driver's numbers.
    ElementType {
        /// 8 bits.
        U8 = 0,
        /// 16 bits.
        U16 = 1,
        /// 32 bits.
        U32 = 2,
        /// 32 bits, signed.
        S32 = 3,
        /// 64 bits.
        U64 = 4,
        /// 64 bits, signed.
        S64 = 5,
        /// Half precision.
        F16 = 6,
        /// Single precision.
        F32 = 7,
        /// Double precision.
        F64 = 8,
        /// Brain float.
        Bf16 = 9,
        /// Single precision; a copy does not change the value.
        F32Ftz = 10,
        /// Single precision, rounded to the 19 bits of `tf32` by a load.
        Tf32 = 11,
        /// As `Tf32`.
        Tf32Ftz = 12,
    }
}

numbered! {
    /// The grouping of innermost elements in memory, with the driver's numbers.
    Interleave {
        /// No grouping.
        None = 0,
        /// Slices of 16 bytes.
        Bytes16 = 1,
        /// Slices of 32 bytes.
        Bytes32 = 2,
    }
}

numbered! {
    /// The permutation of 16-byte chunks in shared memory, with the driver's numbers.
    Swizzle {
        /// No permutation.
        None = 0,
        /// Within 32 bytes: address bit 4 is xored with bit 7.
        Bytes32 = 1,
        /// Within 64 bytes: bits 4 and 5 are xored with bits 7 and 8.
        Bytes64 = 2,
        /// Within 128 bytes: bits 4 to 6 are xored with bits 7 to 9.
        Bytes128 = 3,
    }
}

numbered! {
    /// The size of L2 fetches. The simulator ignores it.
    Promotion {
        /// The size of the request.
        None = 0,
        /// 64 bytes.
        Bytes64 = 1,
        /// 128 bytes.
        Bytes128 = 2,
        /// 256 bytes.
        Bytes256 = 3,
    }
}

numbered! {
    /// The value of elements outside the tensor.
    Fill {
        /// Zero.
        Zero = 0,
        /// A NaN that matrix instructions treat as zero.
        Nan = 1,
    }
}

impl ElementType {
    /// The size of an element in bytes.
    pub fn bytes(self) -> u32 {
        match self {
            ElementType::U8 => 1,
            ElementType::U16 | ElementType::F16 | ElementType::Bf16 => 2,
            ElementType::U64 | ElementType::S64 | ElementType::F64 => 8,
            _ => 4,
        }
    }

    /// Whether the type is a floating-point type.
    pub fn is_float(self) -> bool {
        self as u32 >= ElementType::F16 as u32
    }
}

impl Swizzle {
    /// The number of bytes within which chunks are permuted; 16 without a swizzle.
    pub fn span(self) -> u32 {
        16 << self as u32
    }

    /// The swizzled position of the byte at this shared address (`Swizzle<B, 4, 3>` of CUTLASS; PTX ISA, "Swizzling modes").
    ///
    /// | swizzle of 128 bytes | chunk 0 | 1 | 2 | .. | 7 |
    /// |---|---|---|---|---|---|
    /// | row 0 | 0 | 1 | 2 | .. | 7 |
    /// | row 1 | 1 | 0 | 3 | .. | 6 |
    /// | row 2 | 2 | 3 | 0 | .. | 5 |
    pub fn apply(self, address: u32) -> u32 {
        let mask = self.span() / 16 - 1;
        address ^ (address >> 7 & mask) << 4
    }
}

/// A tensor in global memory, and the box of it that one instruction copies.
#[derive(Clone, PartialEq, Debug)]
pub struct TensorMap {
    /// The element type.
    pub element: ElementType,
    /// The address of the first element.
    pub global_address: u64,
    /// The extent of each dimension in elements, innermost first. The length is the rank.
    pub extents: Vec<u64>,
    /// The stride of each dimension from dimension 1 on, in bytes.
    pub strides: Vec<u64>,
    /// The extent of the box in each dimension, in elements.
    pub box_extents: Vec<u32>,
    /// The element stride of each dimension: the copy takes every n-th element.
    pub element_strides: Vec<u32>,
    /// The grouping of innermost elements.
    pub interleave: Interleave,
    /// The permutation of chunks in shared memory.
    pub swizzle: Swizzle,
    /// The size of L2 fetches.
    pub promotion: Promotion,
    /// The value of elements outside the tensor.
    pub fill: Fill,
}

impl TensorMap {
    /// The number of dimensions.
    pub fn rank(&self) -> usize {
        self.extents.len()
    }

    /// The encoded tensor map for a kernel of the simulator.
    ///
    /// # Errors
    ///
    /// A description of the rule of `cuTensorMapEncodeTiled` that the map violates.
    pub fn encode(&self) -> Result<[u8; TENSOR_MAP_BYTES], String> {
        self.check()?;
        Ok(fields::encode(self))
    }

    /// Decodes a tensor map, or returns a description of the problem.
    pub(crate) fn decode(bytes: &[u8; TENSOR_MAP_BYTES]) -> Result<TensorMap, String> {
        let map = fields::decode(bytes)?;
        map.check()?;
        Ok(map)
    }

    /// Checks the rules of `cuTensorMapEncodeTiled`.
    fn check(&self) -> Result<(), String> {
        let TensorMap { element, global_address, extents, strides, box_extents, element_strides, interleave, swizzle, fill, .. } = self;
        let rank = self.rank();
        if !(1..=MAX_RANK).contains(&rank) {
            return Err(format!("a tensor map has 1 to {MAX_RANK} dimensions, not {rank}"));
        }
        for (name, length, wanted) in [
            ("strides", strides.len(), rank - 1),
            ("extents of the box", box_extents.len(), rank),
            ("element strides", element_strides.len(), rank),
        ] {
            if length != wanted {
                return Err(format!("a tensor map of {rank} dimensions has {wanted} {name}, not {length}"));
            }
        }
        if *interleave != Interleave::None {
            return Err("the simulator knows tensor maps without interleave only".to_owned());
        }
        if global_address % 16 != 0 {
            return Err(format!("the address of a tensor must be a multiple of 16: {global_address:#x}"));
        }
        if let Some(extent) = extents.iter().find(|extent| !(1..=1 << 32).contains(*extent)) {
            return Err(format!("an extent of a tensor map is 1 to 2^32, not {extent}"));
        }
        if let Some(stride) = strides.iter().find(|stride| *stride % 16 != 0 || **stride >= 1 << 40) {
            return Err(format!("a stride of a tensor map is a multiple of 16 and less than 2^40, not {stride}"));
        }
        if let Some(extent) = box_extents.iter().find(|extent| !(1..=256).contains(*extent)) {
            return Err(format!("an extent of the box of a tensor map is 1 to 256, not {extent}"));
        }
        if let Some(stride) = element_strides.iter().find(|stride| !(1..=8).contains(*stride)) {
            return Err(format!("an element stride of a tensor map is 1 to 8, not {stride}"));
        }
        let inner = box_extents[0] * element.bytes();
        if inner % 16 != 0 {
            return Err(format!("the innermost extent of the box must be a multiple of 16 bytes, not {inner}"));
        }
        if *swizzle != Swizzle::None && inner > swizzle.span() {
            return Err(format!(
                "the innermost extent of the box has {inner} bytes, and the swizzle permutes inside of {}",
                swizzle.span()
            ));
        }
        if *fill == Fill::Nan && !element.is_float() {
            return Err("only a tensor of a floating-point type can be filled with NaN".to_owned());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(crate) fn matrix() -> TensorMap {
        TensorMap {
            element: ElementType::F16,
            global_address: 0x10_0000_0100,
            extents: vec![72, 10],
            strides: vec![160],
            box_extents: vec![64, 8],
            element_strides: vec![1, 1],
            interleave: Interleave::None,
            swizzle: Swizzle::Bytes128,
            promotion: Promotion::Bytes128,
            fill: Fill::Zero,
        }
    }

    #[test]
    fn an_encoded_map_decodes_to_the_same_map() {
        let map = matrix();
        assert_eq!(TensorMap::decode(&map.encode().unwrap()), Ok(map.clone()));
        let wide = TensorMap {
            element: ElementType::F32,
            extents: vec![1 << 32, 2, 3, 4, 5],
            strides: vec![16, (1 << 40) - 16, 48, 64],
            box_extents: vec![4, 256, 1, 2, 3],
            element_strides: vec![1, 8, 2, 3, 4],
            swizzle: Swizzle::None,
            fill: Fill::Nan,
            ..map
        };
        assert_eq!(TensorMap::decode(&wide.encode().unwrap()), Ok(wide));
    }

    #[test]
    fn bytes_of_something_else_are_no_map() {
        assert!(TensorMap::decode(&[0; TENSOR_MAP_BYTES]).is_err());
    }

    #[test]
    fn maps_that_the_driver_rejects_are_rejected() {
        let rejected = |change: &dyn Fn(&mut TensorMap), message: &str| {
            let mut map = matrix();
            change(&mut map);
            assert_eq!(map.encode().unwrap_err(), message);
        };
        rejected(&|map| map.global_address += 8, "the address of a tensor must be a multiple of 16: 0x1000000108");
        rejected(&|map| map.strides[0] = 152, "a stride of a tensor map is a multiple of 16 and less than 2^40, not 152");
        rejected(&|map| map.strides[0] = 1 << 40, "a stride of a tensor map is a multiple of 16 and less than 2^40, not 1099511627776");
        rejected(&|map| map.extents[1] = 0, "an extent of a tensor map is 1 to 2^32, not 0");
        rejected(&|map| map.box_extents[1] = 257, "an extent of the box of a tensor map is 1 to 256, not 257");
        rejected(&|map| map.box_extents[0] = 4, "the innermost extent of the box must be a multiple of 16 bytes, not 8");
        rejected(
            &|map| map.swizzle = Swizzle::Bytes64,
            "the innermost extent of the box has 128 bytes, and the swizzle permutes inside of 64",
        );
        rejected(&|map| map.element_strides[1] = 9, "an element stride of a tensor map is 1 to 8, not 9");
        rejected(&|map| map.strides.push(16), "a tensor map of 2 dimensions has 1 strides, not 2");
        rejected(
            &|map| (map.element, map.fill) = (ElementType::U16, Fill::Nan),
            "only a tensor of a floating-point type can be filled with NaN",
        );
    }

    /// Compares with the figures of the swizzling modes in the PTX ISA: the position of each 16-byte chunk, for eight rows of 128 bytes.
    #[test]
    fn pieces_are_permuted_as_the_pictures_show() {
        let row =
            |swizzle: Swizzle, row: u32| -> Vec<u32> { (0..8).map(|piece| swizzle.apply(row * 128 + piece * 16) / 16 - row * 8).collect() };
        assert_eq!(row(Swizzle::Bytes128, 0), [0, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(row(Swizzle::Bytes128, 1), [1, 0, 3, 2, 5, 4, 7, 6]);
        assert_eq!(row(Swizzle::Bytes128, 2), [2, 3, 0, 1, 6, 7, 4, 5]);
        assert_eq!(row(Swizzle::Bytes128, 5), [5, 4, 7, 6, 1, 0, 3, 2]);
        assert_eq!(row(Swizzle::Bytes128, 7), [7, 6, 5, 4, 3, 2, 1, 0]);
        assert_eq!(row(Swizzle::Bytes128, 8), [0, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(row(Swizzle::Bytes64, 1), [1, 0, 3, 2, 5, 4, 7, 6]);
        assert_eq!(row(Swizzle::Bytes64, 3), [3, 2, 1, 0, 7, 6, 5, 4]);
        assert_eq!(row(Swizzle::Bytes64, 4), [0, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(row(Swizzle::Bytes32, 1), [1, 0, 3, 2, 5, 4, 7, 6]);
        assert_eq!(row(Swizzle::Bytes32, 2), [0, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(row(Swizzle::None, 3), [0, 1, 2, 3, 4, 5, 6, 7]);
    }
}
