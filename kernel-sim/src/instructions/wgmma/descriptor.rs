//! Matrix descriptors: the layout of `wgmma` operands in shared memory (PTX ISA, "Asynchronous Warpgroup Level Matrix Instructions: Shared
//! Memory Matrix Layout", "Matrix Descriptor Format").
//!
//! | bits | contents |
//! |---|---|
//! | 0..14 | start address / 16 |
//! | 16..30 | leading dimension byte offset / 16 |
//! | 32..46 | stride dimension byte offset / 16 |
//! | 49..52 | base offset |
//! | 62..64 | 0: no swizzle, 1: 128 bytes, 2: 64, 3: 32 |
//!
//! Elements are grouped in units of 16 bytes, and units in core matrices of 8 rows. *Outer* is M or N. *inner* is the span of the swizzle
//! in bytes (16 without a swizzle). `L` and `S` are the leading and the stride byte offset.
//!
//! | major | swizzle | byte offset of element (outer, k) |
//! |---|---|---|
//! | K | none | `outer % 8 * 16 + outer / 8 * S + byte(k) / 16 * L + byte(k) % 16` |
//! | K | yes | `outer % 8 * inner + outer / 8 * S + byte(k)`, permuted |
//! | outer | none | `byte(outer) % 16 + byte(outer) / 16 * S + k % 8 * 16 + k / 8 * L` |
//! | outer | yes | `byte(outer) % inner + byte(outer) / inner * L + k % 8 * inner + k / 8 * S`, permuted |

use crate::tensor_map::Swizzle;

/// The contiguous dimension of an operand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Major {
    /// K: the operand is not transposed.
    K,
    /// M of A, N of B: the operand is transposed.
    Outer,
}

/// A matrix descriptor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Descriptor {
    start: u32,
    leading: u32,
    stride: u32,
    swizzle: Swizzle,
}

/// The bits outside every field.
const UNUSED: u64 = !(0x3fff | 0x3fff << 16 | 0x3fff << 32 | 7 << 49 | 3 << 62);

impl Descriptor {
    pub(super) fn decode(bits: u64) -> Result<Descriptor, String> {
        if bits & UNUSED != 0 {
            return Err(format!("{bits:#x} is no matrix descriptor: bits {:#x} must be 0", bits & UNUSED));
        }
        let base_offset = bits >> 49 & 7;
        if base_offset != 0 {
            return Err(format!("the matrix descriptor {bits:#x} has base offset {base_offset}, and the simulator knows 0 only"));
        }
        let field = |shift: u32| ((bits >> shift & 0x3fff) << 4) as u32;
        let swizzle = match bits >> 62 {
            0 => Swizzle::None,
            1 => Swizzle::Bytes128,
            2 => Swizzle::Bytes64,
            _ => Swizzle::Bytes32,
        };
        Ok(Descriptor { start: field(0), leading: field(16), stride: field(32), swizzle })
    }

    /// The shared offset of an element of this size.
    pub(super) fn offset(&self, major: Major, bytes: u32, outer: u32, k: u32) -> u32 {
        let Descriptor { start, leading, stride, swizzle } = *self;
        let inner = swizzle.span();
        let offset = match (major, swizzle) {
            (Major::K, Swizzle::None) => {
                let byte = k * bytes;
                outer % 8 * 16 + outer / 8 * stride + byte / 16 * leading + byte % 16
            }
            (Major::K, _) => outer % 8 * inner + outer / 8 * stride + k * bytes,
            (Major::Outer, Swizzle::None) => {
                let byte = outer * bytes;
                byte % 16 + byte / 16 * stride + k % 8 * 16 + k / 8 * leading
            }
            (Major::Outer, _) => {
                let byte = outer * bytes;
                byte % inner + byte / inner * leading + k % 8 * inner + k / 8 * stride
            }
        };
        swizzle.apply(start + offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn descriptor(start: u64, leading: u64, stride: u64, mode: u64) -> Descriptor {
        Descriptor::decode(start >> 4 | leading >> 4 << 16 | stride >> 4 << 32 | mode << 62).unwrap()
    }

    #[test]
    fn bits_without_a_meaning_are_refused() {
        assert!(Descriptor::decode(1 << 14).is_err() && Descriptor::decode(1 << 46).is_err() && Descriptor::decode(1 << 52).is_err());
        assert!(Descriptor::decode(2 << 49).unwrap_err().contains("base offset 2"));
    }

    /// 16 rows of 16 halves, K-major without a swizzle: four core matrices of 128 bytes.
    #[test]
    fn core_matrices_follow_each_other_without_a_swizzle() {
        let matrix = descriptor(1024, 128, 256, 0);
        let at = |row, k| matrix.offset(Major::K, 2, row, k) - 1024;
        assert_eq!([at(0, 0), at(0, 7), at(1, 0), at(7, 7)], [0, 14, 16, 126]);
        assert_eq!([at(0, 8), at(3, 9), at(8, 0), at(15, 15)], [128, 178, 256, 510]);
    }

    #[test]
    fn rows_of_the_span_are_permuted_by_their_number() {
        let matrix = descriptor(0, 16, 1024, 1);
        let unit = |row: u32, k: u32| matrix.offset(Major::K, 2, row, k) / 16;
        for row in 0..8 {
            assert_eq!([unit(row, 0), unit(row, 8)], [row * 8 + row, row * 8 + (row ^ 1)]);
        }
        assert_eq!(unit(8, 0), 64);
        // The second step along K begins at byte 32, inside the same swizzle pattern.
        let second = descriptor(32, 16, 1024, 1);
        assert_eq!(
            (0..8).map(|row| second.offset(Major::K, 2, row, 0) / 16).collect::<Vec<_>>(),
            (0..8).map(|row| row * 8 + (row ^ 2)).collect::<Vec<_>>()
        );
        let narrow = descriptor(0, 16, 256, 3);
        assert_eq!((0..8).map(|row| narrow.offset(Major::K, 2, row, 0) / 16 % 2).collect::<Vec<_>>(), [0, 0, 0, 0, 1, 1, 1, 1]);
        let middle = descriptor(0, 16, 512, 2);
        assert_eq!((0..8).map(|row| middle.offset(Major::K, 2, row, 0) / 16 % 4).collect::<Vec<_>>(), [0, 0, 1, 1, 2, 2, 3, 3]);
    }

    #[test]
    fn a_transposed_operand_runs_along_its_outer_dimension() {
        let matrix = descriptor(0, 4096, 1024, 1);
        let at = |outer, k| matrix.offset(Major::Outer, 2, outer, k);
        assert_eq!([at(0, 0), at(7, 0), at(63, 0), at(64, 0)], [0, 14, 126, 4096]);
        assert_eq!([at(0, 1), at(8, 1), at(0, 8)], [128 + 16, 128, 1024]);
        let plain = descriptor(0, 256, 512, 0);
        let at = |outer, k| plain.offset(Major::Outer, 2, outer, k);
        assert_eq!([at(0, 0), at(1, 0), at(0, 1), at(8, 0), at(0, 8)], [0, 2, 16, 512, 256]);
    }

    /// No two elements overlap.
    #[test]
    fn no_two_elements_share_bytes() {
        for (major, mode, leading, stride) in [
            (Major::K, 0, 128, 256),
            (Major::K, 1, 16, 1024),
            (Major::K, 2, 16, 512),
            (Major::K, 3, 16, 256),
            (Major::Outer, 1, 2048, 1024),
        ] {
            let matrix = descriptor(0, leading, stride, mode);
            let mut offsets: Vec<u32> = (0..128).flat_map(|outer| (0..16).map(move |k| matrix.offset(major, 2, outer, k))).collect();
            offsets.sort_unstable();
            offsets.dedup();
            assert_eq!(offsets.len(), 128 * 16, "{major:?} {mode}");
        }
    }
}
