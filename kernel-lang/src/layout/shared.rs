//! Shared-memory conversions: a swizzle for the two layouts, free of bank conflicts, and the stores and loads that use it.
//!
//! A [`Memory`] is a bijection between offsets and elements, linear over GF(2): a swizzle. Its columns, from the lowest offset bit, are the
//! *vector* (one access of one thread), the *banks* (one row of 128 bytes), and the *segments*. Two lanes conflict if they access the same
//! bank in different segments, so:
//!
//! ```text
//! an access is free of conflicts  <=>  span(segments) and span(vector and lanes of one wavefront) intersect only in zero
//!
//! 8 x 8 elements, 8 banks; lanes of the store run along columns (bits 1 2 4), lanes of the load along rows (8 16 32)
//! segments 8, 16, 32       row-major; all of them are lanes of the load: 8-way conflicts
//! segments 9, 18, 36       independent of both: element (r, c) lies in bank c ^ r
//! ```
//!
//! Over GF(2) there are always segments that avoid both sides. As long as neither side together with the segments so far fills the space,
//! add a vector outside both. Such a vector exists, because two proper subspaces never cover a space: if `a` is outside the first and `b`
//! is outside the second, one of `a`, `b`, `a ^ b` is outside both. A wavefront moves at most 128 bytes, so neither side is larger than the
//! banks. Therefore both accesses are free of conflicts, which is the minimum.
//!
//! Source: arXiv 2505.23819, "Optimal swizzling" (the `e ^ f` of its proof is `a ^ b` here). One case goes beyond the paper: if the two
//! layouts share too few registers for 16 bytes, the access of one side also includes its registers that are lanes of the other side.

use super::conversion::{XorTable, check, differences, xor_of};
use super::matrix::{Span, combine, intersection};
use super::{Coordinate, Layout, LayoutError, Level};

/// Bits of a byte's offset within a row of all banks: 32 banks of 4 bytes.
const ROW_BITS: usize = 7;
/// Bits of a byte's offset within a bank.
const WORD_BITS: usize = 2;
/// Bits of a byte's offset within the widest access of a thread: 16 bytes.
const WIDEST_BITS: usize = 4;
/// The cost of two barriers, in half issue slots.
const BARRIERS: u32 = 64;

/// The order of elements in shared memory: a linear bijection between offsets, in elements, and row-major indices of the tile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Memory {
    columns: Vec<u64>,
    offsets: Span,
}

impl Memory {
    /// The memory in which bit `i` of the offset stands for the element with the row-major index `columns[i]`. `None` if the columns are
    /// dependent, or if there are more than 31.
    pub fn new(columns: Vec<u64>) -> Option<Memory> {
        if columns.len() > 31 {
            return None;
        }
        let offsets = Span::of(&columns);
        (offsets.rank() == columns.len()).then_some(Memory { columns, offsets })
    }

    /// Elements in row-major order, without a swizzle.
    pub fn row_major(layout: &Layout) -> Memory {
        let columns: Vec<u64> = (0..layout.index_bits()).map(|bit| 1 << bit).collect();
        Memory { offsets: Span::of(&columns), columns }
    }

    /// The memory in which a store from `src` and a load to `dst` are as wide as possible and free of bank conflicts.
    ///
    /// # Errors
    /// See [`conversion`](super::conversion()).
    pub fn swizzled(src: &Layout, dst: &Layout, element_bits: u32) -> Result<Memory, LayoutError> {
        check(src, dst, element_bits)?;
        Ok(Memory::between(&Side::source(src), &Side::destination(src, dst), byte_bits(element_bits)))
    }

    /// As [`Memory::swizzled`]. One side may have a part of the elements. If both sides access the same vectors, the lanes of a wavefront of `dst` lie in one row of all banks.
    pub(super) fn between(src: &Side, dst: &Side, byte_bits: usize) -> Memory {
        let columns = swizzle(src, dst, byte_bits);
        Memory { offsets: Span::of(&columns), columns }
    }

    /// By offset bit: its row-major index.
    pub fn columns(&self) -> &[u64] {
        &self.columns
    }

    /// The row-major index of the element at `offset`, in elements.
    pub fn element(&self, offset: u32) -> u64 {
        combine(&self.columns, offset.into())
    }

    /// The offset, in elements, of an element; `None` if the memory does not contain the element.
    pub fn offset(&self, element: u64) -> Option<u32> {
        self.offsets.solve(element).map(|offset| offset as u32)
    }

    /// The number of elements in the memory.
    pub fn elements(&self) -> u32 {
        1 << self.columns.len()
    }
}

/// The store of a tile to shared memory, or the load from it, for every thread.
///
/// Instruction `i` of the thread (lane, warp, block) moves `i.registers`, in this order, to or from consecutive elements. The first element
/// has the offset `i.offset ^ thread(lane, warp, block)`, which is a multiple of [`Access::vector`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Access {
    /// Elements per instruction; at most 16 bytes.
    pub vector: u32,
    /// The part of the offset, in elements, that depends on the thread.
    pub thread: XorTable,
    /// The instructions of every thread.
    pub instructions: Vec<Instruction>,
    /// Lanes and warps with one of these bits set do nothing: in a store, they hold copies.
    pub idle: Coordinate,
    /// The wavefronts (rows of 128 bytes) of one instruction of a warp.
    pub wavefronts: u32,
    /// The number of these wavefronts that bank conflicts cause.
    pub bank_conflicts: u32,
}

/// One instruction of an [`Access`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instruction {
    /// The registers, in memory order.
    pub registers: Vec<u32>,
    /// Xor into the thread's part of the offset, in elements.
    pub offset: u32,
}

impl Access {
    /// Splits the offset of `instruction` into a part that is xored into the thread's part and a part that is added afterwards, as the
    /// immediate of the address: `(thread ^ xor) + add`.
    pub fn split(&self, instruction: &Instruction) -> (u32, u32) {
        let touched = self.thread.touched();
        (instruction.offset & touched, instruction.offset & !touched)
    }

    /// The wavefronts of all instructions of a warp.
    pub fn total_wavefronts(&self) -> u32 {
        self.wavefronts * self.instructions.len() as u32
    }

    /// The best access of one side to `memory`: the vector width with the fewest wavefronts, and of equal ones the widest.
    pub(super) fn new(side: &Side, memory: &Memory, byte_bits: usize, skip_copies: bool) -> Option<Access> {
        let widest = WIDEST_BITS - byte_bits;
        let registers = Span::of(&side.registers);
        let offsets = |bases: &[u64]| bases.iter().map(|&basis| memory.offset(basis)).collect::<Option<Vec<u32>>>();
        let thread = XorTable { lane: offsets(&side.lanes)?, warp: offsets(&side.warps)?, block: offsets(&side.blocks)? };
        let aligned = (thread.touched() | 1 << widest).trailing_zeros() as usize;
        let vectors: Vec<u64> = memory.columns.iter().take(aligned).map_while(|&column| registers.solve(column)).collect();
        let idle = if skip_copies { side.copies() } else { Coordinate::default() };
        let access = |width: usize| -> Option<Access> {
            let (wavefronts, bank_conflicts) = wavefronts(&thread.lane, idle.lane, width, byte_bits);
            let instructions = instructions(&vectors[..width], side, memory)?;
            Some(Access { vector: 1 << width, thread: thread.clone(), instructions, idle, wavefronts, bank_conflicts })
        };
        (0..=vectors.len()).rev().filter_map(access).min_by_key(Access::total_wavefronts)
    }
}

/// A conversion through shared memory: all threads run `store`, then a barrier, then `load`, then `copies`. Another barrier is required
/// before the memory is used again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedPlan {
    /// Bits of an element.
    pub element_bits: u32,
    /// The order of elements in memory. In a cluster each block stores its own elements, as xor differences from the element at `(0, 0, 0,
    /// block)` of the source layout.
    pub memory: Memory,
    /// From the source registers.
    pub store: Access,
    /// To the destination registers.
    pub load: Access,
    /// Destination registers that hold copies: `(register, the register it copies)`, after the load.
    pub copies: Vec<(u32, u32)>,
    /// Whether each warp reads only elements that it wrote itself. A barrier of the warp then suffices between store and load.
    pub within_warps: bool,
}

impl SharedPlan {
    /// The plan with the best memory for the two layouts, [`Memory::swizzled`].
    ///
    /// # Errors
    /// See [`conversion`](super::conversion()).
    pub fn new(src: &Layout, dst: &Layout, element_bits: u32) -> Result<SharedPlan, LayoutError> {
        Self::with_memory(src, dst, element_bits, Memory::swizzled(src, dst, element_bits)?)
    }

    /// The plan with a given memory.
    ///
    /// # Errors
    /// See [`conversion`](super::conversion()); also [`LayoutError::NotSurjective`] if `memory` lacks elements of a block.
    pub fn with_memory(src: &Layout, dst: &Layout, element_bits: u32, memory: Memory) -> Result<SharedPlan, LayoutError> {
        check(src, dst, element_bits)?;
        let byte_bits = byte_bits(element_bits);
        let (source, destination) = (Side::source(src), Side::destination(src, dst));
        let store = Access::new(&source, &memory, byte_bits, true).ok_or(LayoutError::NotSurjective)?;
        let load = Access::new(&destination, &memory, byte_bits, false).ok_or(LayoutError::NotSurjective)?;
        let within_warps = store.idle.warp == 0 && destination.stays_in_warps_of(&source, src, dst);
        Ok(SharedPlan { element_bits, memory, store, load, copies: destination.register_copies(), within_warps })
    }

    /// Bytes of shared memory used.
    pub fn shared_bytes(&self) -> u32 {
        self.memory.elements() * (self.element_bits / 8)
    }

    /// The issue slots of a warp, in halves; a wavefront takes two halves.
    pub fn cost(&self) -> u32 {
        let barrier = if self.within_warps { BARRIERS / 4 } else { BARRIERS };
        2 * (self.store.total_wavefronts() + self.load.total_wavefronts()) + barrier
    }
}

/// The elements of the threads of a block, relative to the element of the source's thread 0 of the block.
pub(super) struct Side {
    pub(super) registers: Vec<u64>,
    pub(super) lanes: Vec<u64>,
    pub(super) warps: Vec<u64>,
    pub(super) blocks: Vec<u64>,
}

impl Side {
    pub(super) fn source(src: &Layout) -> Side {
        let bases = |level| src.flat_bases(level).to_vec();
        Side {
            registers: bases(Level::Register),
            lanes: bases(Level::Lane),
            warps: bases(Level::Warp),
            blocks: vec![0; src.bits(Level::Block)],
        }
    }

    fn destination(src: &Layout, dst: &Layout) -> Side {
        Side { blocks: differences(src, dst, Level::Block), ..Side::source(dst) }
    }

    fn threads(&self) -> impl Iterator<Item = u64> {
        self.lanes.iter().chain(&self.warps).chain(&self.blocks).copied()
    }

    /// The lanes of one wavefront of accesses of `1 << width` elements: as many as fill the row, from the lowest.
    fn wavefront(&self, width: usize, byte_bits: usize) -> &[u64] {
        &self.lanes[..wavefront_lanes(self.lanes.len(), width, byte_bits)]
    }

    /// The bits of lane and warp that only make copies; registers count first.
    fn copies(&self) -> Coordinate {
        let mut span = Span::of(&self.registers);
        let mut free =
            |bases: &[u64]| bases.iter().enumerate().filter(|&(_, &basis)| !span.grow(basis)).fold(0, |mask, (bit, _)| mask | 1 << bit);
        Coordinate { lane: free(&self.lanes), warp: free(&self.warps), ..Coordinate::default() }
    }

    /// By register bit: the register without copies that holds the same element.
    fn register_sources(&self) -> Vec<u32> {
        let span = Span::of(&self.registers);
        self.registers.iter().map(|&basis| span.solve(basis).unwrap_or(0) as u32).collect()
    }

    pub(super) fn register_copies(&self) -> Vec<(u32, u32)> {
        let sources = self.register_sources();
        let all = (0..1u32 << sources.len()).map(|register| (register, xor_of(&sources, register)));
        all.filter(|(register, source)| register != source).collect()
    }

    fn stays_in_warps_of(&self, source: &Side, src: &Layout, dst: &Layout) -> bool {
        let mut written = Span::of(&source.registers);
        written.extend(source.lanes.iter().copied());
        let moved = differences(src, dst, Level::Warp);
        self.registers.iter().chain(&self.lanes).chain(&self.blocks).chain(&moved).all(|&basis| written.contains(basis))
    }
}

fn byte_bits(element_bits: u32) -> usize {
    (element_bits / 8).trailing_zeros() as usize
}

/// The number of lane bits of one wavefront: all lanes for accesses of at most 4 bytes, half of them for 8 bytes, a quarter for 16 bytes.
fn wavefront_lanes(lanes: usize, width: usize, byte_bits: usize) -> usize {
    lanes.min(ROW_BITS - (width + byte_bits).max(WORD_BITS))
}

/// The wavefronts of one instruction of a warp, and the number of them that bank conflicts add. The 4-byte words of one wavefront form an
/// affine space. Each bank in use therefore has the same number of words: two to the difference of the ranks.
fn wavefronts(lanes: &[u32], idle: u32, width: usize, byte_bits: usize) -> (u32, u32) {
    let together = wavefront_lanes(lanes.len(), width, byte_bits);
    let active = |bit: &usize| idle >> bit & 1 == 0;
    let (mut words, mut banks) = (Span::default(), Span::default());
    let of_lanes = (0..together).filter(active).map(|bit| u64::from(lanes[bit]));
    for offset in (0..width).map(|bit| 1 << bit).chain(of_lanes) {
        let word = offset << byte_bits >> WORD_BITS;
        words.grow(word);
        banks.grow(word & ((1 << (ROW_BITS - WORD_BITS)) - 1));
    }
    let groups = 1 << (together..lanes.len()).filter(active).count();
    let all = groups << (words.rank() - banks.rank());
    (all, all - groups)
}

/// The instructions that move each register without copies once, in vectors that the register masks `vectors` span.
fn instructions(vectors: &[u64], side: &Side, memory: &Memory) -> Option<Vec<Instruction>> {
    let masks: Vec<u32> = vectors.iter().map(|&mask| mask as u32).collect();
    let mut spanned = Span::of(vectors);
    let low = (1 << vectors.len()) - 1;
    let mut between = Vec::new();
    for (bit, &source) in side.register_sources().iter().enumerate() {
        if source == 1 << bit && spanned.grow(source.into()) {
            // The start of a vector: removes the register's offset within its vector.
            let offset = memory.offset(side.registers[bit])?;
            between.push((source ^ xor_of(&masks, offset & low), offset & !low));
        }
    }
    let (starts, offsets): (Vec<u32>, Vec<u32>) = between.into_iter().unzip();
    let instruction = |number| Instruction {
        registers: (0..=low).map(|part| xor_of(&starts, number) ^ xor_of(&masks, part)).collect(),
        offset: xor_of(&offsets, number),
    };
    Some((0..1 << starts.len()).map(instruction).collect())
}

/// The columns of the memory for a store from `src` and a load to `dst`.
fn swizzle(src: &Side, dst: &Side, byte_bits: usize) -> Vec<u64> {
    // Registers that both sides hold, as long as no thread's part of an index overlaps them.
    let widest = WIDEST_BITS - byte_bits;
    let mut taken = Span::default();
    taken.extend(src.threads().chain(dst.threads()));
    let mut common = intersection(&src.registers, &dst.registers);
    common.retain(|&vector| taken.grow(vector));
    common.truncate(widest);

    let (to_load, to_store) = (widen(&common, dst, src, byte_bits), widen(&common, src, dst, byte_bits));
    let (wide, narrow, further) = if to_store.len() > to_load.len() { (src, dst, to_store) } else { (dst, src, to_load) };
    let mut columns = [&common[..], &further].concat();
    let width = columns.len();

    // A complement of the vector that contains the threads of the wide side, so that its vectors are aligned in every thread. The vector of
    // the narrow side contains none of its threads already. Registers come last, so that they become segments and therefore immediates.
    let mut span = Span::of(&columns);
    let all = wide.threads().chain(narrow.threads()).chain(src.registers.iter().chain(&dst.registers).copied());
    let rest: Vec<u64> = all.filter(|&basis| span.grow(basis)).collect();

    // Vectors narrower than 4 bytes: the first columns of the banks fill up the 4 bytes, and any columns do.
    let filler = &rest[..rest.len().min(WORD_BITS.saturating_sub(byte_bits + width))];
    let row = (ROW_BITS - byte_bits).min(width + rest.len());
    let count = width + rest.len() - row;
    let sides = [(wide, width), (narrow, common.len())].map(|(side, width)| {
        let mut avoided = Span::of(&columns[..width]);
        avoided.extend(filler.iter().chain(side.wavefront(width, byte_bits)).copied());
        avoided
    });
    let segments = outside_both(&rest, sides, count);

    let mut occupied = Span::of(&columns);
    occupied.extend(segments.iter().copied());
    columns.extend(rest.iter().filter(|&&basis| occupied.grow(basis)));
    columns.extend(segments);
    columns
}

/// Additional vector columns for one side: its registers that are lanes of one wavefront of the other side. For the other side these
/// columns are banks.
fn widen(common: &[u64], wide: &Side, narrow: &Side, byte_bits: usize) -> Vec<u64> {
    let mut taken = Span::of(common);
    taken.extend(wide.threads());
    let mut further = intersection(&wide.registers, narrow.wavefront(common.len(), byte_bits));
    further.retain(|&vector| taken.grow(vector));
    further.truncate((WIDEST_BITS - byte_bits).saturating_sub(common.len()));
    further
}

/// `count` vectors of span(`space`) that stay independent modulo each of the two subspaces: a common complement, built by the greedy method
/// in the module documentation. There are fewer if a side and the vectors fill the space.
fn outside_both(space: &[u64], mut sides: [Span; 2], count: usize) -> Vec<u64> {
    let mut found = Vec::new();
    while found.len() < count {
        let outside = |side: &Span| space.iter().rev().copied().find(|&vector| !side.contains(vector));
        let both = space.iter().rev().copied().find(|&vector| sides.iter().all(|side| !side.contains(vector)));
        let Some(vector) = both.or_else(|| Some(outside(&sides[0])? ^ outside(&sides[1])?)) else {
            break;
        };
        sides.iter_mut().for_each(|side| side.extend([vector]));
        found.push(vector);
    }
    found
}
