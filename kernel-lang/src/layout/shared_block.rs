//! Blocks in shared memory: the order of their elements, which tensor copies write and warpgroup products read (PTX ISA, "Asynchronous Warpgroup Level Matrix
//! Shared Memory Layout").
//!
//! Along the contiguous axis, a block is cut into *atoms* of at most 128 bytes. An atom has a row for each index of the other axis. Its rows follow one
//! another, and so do the atoms. Within an atom, chunks of 16 bytes are swizzled: the number of the row is xored into that of the chunk, so that the same chunk of
//! eight rows lies in different banks.
//!
//! ```text
//! atom of 128 bytes    chunk 0   1   2   3   4   5   6   7
//! row 0                      0   1   2   3   4   5   6   7
//! row 1                      1   0   3   2   5   4   7   6
//! row 2                      2   3   0   1   6   7   4   5
//! ```

use super::constructors::Tiler;
use super::{Layout, LayoutError, Level, Memory, PartAccess};

/// The columns of the widest warpgroup product.
pub const MOST_COLUMNS: u32 = 256;
/// The bytes of a row of the widest atom.
const WIDEST_ATOM: u32 = 128;
/// The bytes that a swizzle moves together.
const CHUNK: u32 = 16;
/// The rows of a core matrix, between which the stride of a descriptor lies.
const GROUP: u32 = 8;
/// The bytes to which a block is aligned: the rows of a core matrix in the widest atom.
pub const BLOCK_ALIGNMENT: u32 = GROUP * WIDEST_ATOM;

/// The rows of a block that a warp stores, or the columns of a swapped one: those of its accumulators.
pub const STAGED_ROWS: u32 = 16;
/// The memory through which a warp stores such blocks: two of them, so that one is written while the other one is copied.
pub const STAGING_BYTES: u32 = 2 * STAGED_ROWS * WIDEST_ATOM;

/// The order of the elements of a block.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct SharedBlock {
    /// The extents.
    pub shape: [u32; 2],
    /// The axis along which neighbours are adjacent.
    pub contiguous: usize,
    /// The bytes of an element.
    pub element_bytes: u32,
}

impl SharedBlock {
    /// A block with these extents. `None` if the hardware has no such order: the extents are powers of two, a row of an atom has at least 32 bytes, and
    /// a copy has at most 256 rows.
    pub fn new(shape: [u32; 2], contiguous: usize, element_bytes: u32) -> Option<SharedBlock> {
        let block = SharedBlock { shape, contiguous, element_bytes };
        let is_known = shape.iter().all(|extent| extent.is_power_of_two())
            && shape[contiguous] * element_bytes >= 2 * CHUNK
            && (GROUP..=MOST_COLUMNS).contains(&block.rows());
        is_known.then_some(block)
    }

    /// The same elements with both axes exchanged.
    #[must_use]
    pub fn transposed(self) -> SharedBlock {
        SharedBlock { shape: [self.shape[1], self.shape[0]], contiguous: 1 - self.contiguous, ..self }
    }

    /// The bytes of a row of an atom, which are also those of the swizzle: 32, 64 or 128.
    pub fn row_bytes(self) -> u32 {
        (self.shape[self.contiguous] * self.element_bytes).min(WIDEST_ATOM)
    }

    /// The elements of a row of an atom.
    pub fn row_elements(self) -> u32 {
        self.row_bytes() / self.element_bytes
    }

    /// The rows of an atom.
    pub fn rows(self) -> u32 {
        self.shape[1 - self.contiguous]
    }

    /// The number of atoms.
    pub fn atoms(self) -> u32 {
        self.shape[self.contiguous] / self.row_elements()
    }

    /// The bytes of an atom.
    pub fn atom_bytes(self) -> u32 {
        self.rows() * self.row_bytes()
    }

    /// The bytes of the block.
    pub fn bytes(self) -> u32 {
        self.atoms() * self.atom_bytes()
    }

    /// The bytes between two groups of eight rows: the stride of a descriptor.
    pub fn group_bytes(self) -> u32 {
        GROUP * self.row_bytes()
    }

    /// The byte at which the element `index` would be without a swizzle. This is its place in a descriptor, because the hardware swizzles the address itself.
    pub fn unswizzled(self, index: [u32; 2]) -> u32 {
        let (along, row) = (index[self.contiguous] * self.element_bytes, index[1 - self.contiguous]);
        along / self.row_bytes() * self.atom_bytes() + row * self.row_bytes() + along % self.row_bytes()
    }

    /// The part of a tile with these extents that a warp stores at once. A warp has 16 rows of a tile, or 16 columns if it is `swapped`.
    pub fn staged([rows, columns]: [u32; 2], element_bytes: u32, swapped: bool) -> Option<SharedBlock> {
        let shape = match swapped {
            false => [STAGED_ROWS, columns.min(WIDEST_ATOM / element_bytes)],
            true => [rows.min(WIDEST_ATOM / element_bytes), STAGED_ROWS],
        };
        SharedBlock::new(shape, 1, element_bytes)
    }

    /// The byte at which the element `index` is.
    pub fn place(self, index: [u32; 2]) -> u32 {
        let flat = self.unswizzled(index);
        // Of rows of 128 bytes, three bits of the chunk's number are xored with the bits above 128 bytes; of shorter rows, fewer bits.
        let chunks = self.row_bytes() / CHUNK - 1;
        flat ^ (((flat / WIDEST_ATOM) & chunks) * CHUNK)
    }

    /// The loads with which threads read the elements that they have in a layout. `None` if the block has more elements than a layout has registers.
    pub fn read(self, layout: &Layout) -> Option<PartAccess> {
        let memory = Memory::new(self.layout().ok()?.flat_bases(Level::Register).to_vec())?;
        PartAccess::of_memory(&memory, layout, 8 * self.element_bytes)
    }

    /// The order as a layout: its registers are the elements of the block in the order of their addresses.
    ///
    /// # Errors
    /// If the block has more elements than a layout has registers.
    pub fn layout(self) -> Result<Layout, LayoutError> {
        let mut tiler = Tiler::new(&self.shape)?;
        let (along, across) = (self.contiguous, 1 - self.contiguous);
        let mut step = 1;
        while step < self.row_elements() {
            tiler.bit(Level::Register, along, step);
            step *= 2;
        }
        let (chunk, swizzle) = (CHUNK / self.element_bytes, self.row_bytes() / CHUNK);
        let rows_in_a_line = WIDEST_ATOM / self.row_bytes();
        let mut row = 1;
        while row < self.rows() {
            // The chunk of an address is that of the element, xored with the row: so the row of an address is found in both.
            let xored = row / rows_in_a_line;
            let moved = if row >= rows_in_a_line && xored < swizzle { xored * chunk } else { 0 };
            tiler.bits(Level::Register, &[(across, row), (along, moved)]);
            row *= 2;
        }
        tiler.extend(Level::Register, along, self.atoms())?;
        tiler.finish(&[along, across])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocks() -> impl Iterator<Item = SharedBlock> {
        let extents = [8, 16, 32, 64, 128, 256];
        let shapes = extents.into_iter().flat_map(move |rows| extents.map(|columns| [rows, columns]));
        shapes.flat_map(|shape| {
            [0, 1].into_iter().flat_map(move |axis| [1, 2, 4].into_iter().filter_map(move |bytes| SharedBlock::new(shape, axis, bytes)))
        })
    }

    #[test]
    fn a_layout_lists_the_elements_in_the_order_of_their_places() {
        let mut count = 0;
        for block in blocks().filter(|block| block.shape[0] * block.shape[1] <= 1 << 13) {
            let layout = block.layout().unwrap();
            assert_eq!(layout.registers_per_thread(), block.shape[0] * block.shape[1]);
            for register in 0..layout.registers_per_thread() {
                let index = layout.apply(register, 0, 0, 0);
                assert_eq!(block.place([index[0], index[1]]), register * block.element_bytes, "{block:?} {index:?}");
            }
            count += 1;
        }
        assert!(count > 60, "{count}");
    }

    /// Eight rows at one chunk are what a matrix instruction reads at once.
    #[test]
    fn eight_rows_of_a_chunk_lie_in_different_banks() {
        for block in blocks() {
            for chunk in (0..block.shape[block.contiguous]).step_by((CHUNK / block.element_bytes) as usize) {
                let place = |row: u32| {
                    let mut index = [row; 2];
                    index[block.contiguous] = chunk;
                    block.place(index) % WIDEST_ATOM / CHUNK
                };
                let mut banks: Vec<u32> = (0..GROUP).map(place).collect();
                banks.sort_unstable();
                assert_eq!(banks, [0, 1, 2, 3, 4, 5, 6, 7], "{block:?}");
            }
        }
    }

    /// The numbers of a descriptor.
    #[test]
    fn atoms_of_each_width() {
        let sizes = |shape, contiguous| {
            let block = SharedBlock::new(shape, contiguous, 2).unwrap();
            [block.row_bytes(), block.row_elements(), block.rows(), block.atoms(), block.atom_bytes(), block.group_bytes(), block.bytes()]
        };
        assert_eq!(sizes([64, 16], 1), [32, 16, 64, 1, 2048, 256, 2048]);
        assert_eq!(sizes([64, 32], 1), [64, 32, 64, 1, 4096, 512, 4096]);
        assert_eq!(sizes([128, 64], 1), [128, 64, 128, 1, 16384, 1024, 16384]);
        assert_eq!(sizes([64, 256], 1), [128, 64, 64, 4, 8192, 1024, 32768]);
        assert_eq!(sizes([128, 16], 0), [128, 64, 16, 2, 2048, 1024, 4096]);
        let block = SharedBlock::new([64, 256], 1, 2).unwrap();
        // The second row, the second atom, and the third element of its second row.
        assert_eq!([[1, 0], [0, 64], [1, 66]].map(|index| block.unswizzled(index)), [128, 8192, 8192 + 128 + 4]);
        assert_eq!([[1, 0], [0, 64], [1, 66]].map(|index| block.place(index)), [128 + 16, 8192, 8192 + 128 + 16 + 4]);
    }

    #[test]
    fn blocks_that_the_hardware_does_not_know() {
        let is_known = |shape, contiguous, bytes| SharedBlock::new(shape, contiguous, bytes).is_some();
        // Rows of 16 bytes, fewer rows than a core matrix, more rows than a copy has, and extents that are no power of two.
        for (shape, contiguous, bytes) in
            [([64, 8], 1, 2), ([4, 64], 1, 2), ([512, 64], 1, 2), ([64, 48], 1, 2), ([48, 64], 1, 2), ([64, 4], 1, 4), ([8, 64], 0, 2)]
        {
            assert!(!is_known(shape, contiguous, bytes), "{shape:?} along {contiguous}, {bytes} bytes");
        }
        for (shape, contiguous, bytes) in
            [([64, 16], 1, 2), ([8, 64], 1, 2), ([256, 64], 1, 2), ([64, 512], 1, 2), ([64, 8], 1, 4), ([16, 8], 0, 2)]
        {
            assert!(is_known(shape, contiguous, bytes), "{shape:?} along {contiguous}, {bytes} bytes");
        }
        let staged = |extents, bytes, swapped| SharedBlock::staged(extents, bytes, swapped).map(|block| block.shape);
        assert_eq!(staged([64, 256], 4, false), Some([16, 32]));
        assert_eq!(staged([64, 256], 2, false), Some([16, 64]));
        assert_eq!(staged([64, 8], 4, false), Some([16, 8]));
        assert_eq!(staged([64, 8], 2, false), None);
        assert_eq!(staged([128, 64], 4, true), Some([32, 16]));
        assert_eq!(staged([128, 64], 2, true), Some([64, 16]));
        assert_eq!(staged([16, 64], 2, true), Some([16, 16]));
    }
}
