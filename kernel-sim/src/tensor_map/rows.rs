//! The rows of a box: maps bytes of global memory to bytes of shared memory.

use super::{Fill, Swizzle, TensorMap};

/// A row of a box along the innermost dimension.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct BoxRow {
    /// The offset of the first byte in the box, before the swizzle.
    pub(crate) shared: u32,
    /// The bytes of the row before the start of the tensor.
    pub(crate) before: u32,
    /// Bytes of the row inside the tensor.
    pub(crate) inside: u32,
    /// The bytes of the row after the end of the tensor.
    pub(crate) after: u32,
    /// The address of the first byte inside the tensor; meaningless if there is none.
    pub(crate) global: u64,
}

impl TensorMap {
    /// The number of elements of a box along a dimension. Along the innermost dimension the element stride has no effect without
    /// interleave.
    fn box_count(&self, dimension: usize) -> u32 {
        if dimension == 0 { self.box_extents[0] } else { self.box_extents[dimension].div_ceil(self.element_strides[dimension]) }
    }

    /// The bytes of a row of a box.
    fn row_bytes(&self) -> u32 {
        self.box_extents[0] * self.element.bytes()
    }

    /// The distance of consecutive rows of a box in shared memory, in bytes. With a swizzle it is the span of the swizzle, even for shorter
    /// rows.
    pub(crate) fn row_pitch(&self) -> u32 {
        if self.swizzle == Swizzle::None { self.row_bytes() } else { self.swizzle.span() }
    }

    fn box_rows(&self) -> u32 {
        (1..self.rank()).map(|dimension| self.box_count(dimension)).product()
    }

    /// The size of a box in shared memory, in bytes.
    pub(crate) fn box_span(&self) -> u32 {
        self.box_rows() * self.row_pitch()
    }

    /// The transaction count of a copy of a box on its mbarrier, in bytes. It includes bytes outside the tensor.
    pub(crate) fn transaction_bytes(&self) -> u32 {
        self.box_rows() * self.row_bytes()
    }

    /// The rows of the box with its first element at these coordinates, in the order of shared memory.
    pub(crate) fn rows(&self, coordinates: &[i32]) -> Vec<BoxRow> {
        let size = i64::from(self.element.bytes());
        let first = i64::from(coordinates[0]);
        let count = i64::from(self.box_count(0));
        let inside_from = (-first).clamp(0, count);
        let inside_to = (self.extents[0] as i64 - first).clamp(inside_from, count);
        (0..self.box_rows())
            .map(|row| {
                let mut rest = row;
                let mut is_inside = true;
                let mut global = self.global_address.wrapping_add_signed((first + inside_from) * size);
                for (dimension, &coordinate) in coordinates.iter().enumerate().skip(1) {
                    let step = rest % self.box_count(dimension);
                    rest /= self.box_count(dimension);
                    let index = i64::from(coordinate) + i64::from(step * self.element_strides[dimension]);
                    is_inside &= (0..self.extents[dimension] as i64).contains(&index);
                    global = global.wrapping_add((index as u64).wrapping_mul(self.strides[dimension - 1]));
                }
                let (before, inside, after) =
                    if is_inside { (inside_from, inside_to - inside_from, count - inside_to) } else { (count, 0, 0) };
                let bytes = |elements: i64| (elements * size) as u32;
                BoxRow { shared: row * self.row_pitch(), before: bytes(before), inside: bytes(inside), after: bytes(after), global }
            })
            .collect()
    }

    /// The bytes of an element outside the tensor. On an H200, a NaN repeats the same 16 bits in each type.
    pub(crate) fn fill_bytes(&self) -> Vec<u8> {
        let bytes = self.element.bytes() as usize;
        match self.fill {
            Fill::Zero => vec![0; bytes],
            Fill::Nan => 0x7ff7_u16.to_le_bytes().repeat(bytes / 2),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::matrix;
    use super::*;
    use crate::tensor_map::ElementType;

    fn row(shared: u32, before: u32, inside: u32, after: u32, global: u64) -> BoxRow {
        BoxRow { shared, before, inside, after, global }
    }

    #[test]
    fn a_box_inside_has_all_its_rows() {
        let map = matrix();
        let rows = map.rows(&[8, 2]);
        assert_eq!(rows.len(), 8);
        assert_eq!(rows[0], row(0, 0, 128, 0, 0x10_0000_0100 + 2 * 160 + 16));
        assert_eq!(rows[7], row(7 * 128, 0, 128, 0, 0x10_0000_0100 + 9 * 160 + 16));
        assert_eq!(map.transaction_bytes(), 1024);
    }

    #[test]
    fn a_box_partly_outside_counts_in_full() {
        let map = matrix();
        let rows = map.rows(&[-2, 9]);
        assert_eq!(rows[0], row(0, 4, 124, 0, 0x10_0000_0100 + 9 * 160));
        assert_eq!((rows[1].before, rows[1].inside, rows[1].after), (128, 0, 0));
        let rows = map.rows(&[70, 0]);
        assert_eq!(rows[3], row(3 * 128, 0, 4, 124, 0x10_0000_0100 + 3 * 160 + 140));
        let rows = map.rows(&[100, -1]);
        assert!(rows.iter().all(|row| row.inside == 0 && row.before + row.after == 128), "{rows:?}");
    }

    #[test]
    fn element_strides_skip_elements_of_outer_dimensions() {
        let map = TensorMap { element_strides: vec![1, 3], ..matrix() };
        let rows = map.rows(&[0, 1]);
        assert_eq!(rows.iter().map(|row| row.global).collect::<Vec<_>>(), [1, 4, 7].map(|index| 0x10_0000_0100 + index * 160));
        assert_eq!(map.transaction_bytes(), 3 * 128);
    }

    #[test]
    fn three_dimensions_are_walked_innermost_first() {
        let map = TensorMap {
            element: ElementType::F32,
            extents: vec![8, 3, 4],
            strides: vec![32, 96],
            box_extents: vec![4, 2, 2],
            element_strides: vec![1; 3],
            swizzle: Swizzle::None,
            ..matrix()
        };
        let globals: Vec<_> = map.rows(&[4, 1, 2]).iter().map(|row| row.global - 0x10_0000_0100).collect();
        assert_eq!(globals, [16 + 32 + 192, 16 + 64 + 192, 16 + 32 + 288, 16 + 64 + 288]);
    }

    /// As on an H200 for a box of 16 words and 4 rows: the distance of rows of 64 bytes is 128 bytes, but only their own bytes count.
    #[test]
    fn short_rows_take_the_whole_span_of_the_swizzle() {
        let map = TensorMap { element: ElementType::U32, box_extents: vec![16, 4], ..matrix() };
        assert_eq!(map.rows(&[0, 0]).iter().map(|row| row.shared).collect::<Vec<_>>(), [0, 128, 256, 384]);
        assert_eq!((map.transaction_bytes(), map.box_span()), (256, 512));
        let nan = TensorMap { element: ElementType::F32, fill: Fill::Nan, ..map };
        assert_eq!(nan.fill_bytes(), [0xf7, 0x7f, 0xf7, 0x7f]);
    }
}
