//! Conversions through shared memory: where each element lies, chosen for the two layouts at hand.
//!
//! A [`Memory`] is a bijection between offsets and elements, linear over GF(2): a swizzle. Its columns, from the lowest
//! offset bit, are the *vector* (what one thread reads or writes at once), the *banks* (one row of 128 bytes), and the
//! *segments*. Two lanes conflict if they access the same bank in different segments, so:
//!
//! ```text
//! an access is free of conflicts  <=>  span(segments) meets span(vector and lanes of one wavefront) only in zero
//!
//! 8 x 8 elements, 8 banks; lanes of the store run along columns (bits 1 2 4), lanes of the load along rows (8 16 32)
//! segments 8, 16, 32       row-major; the load meets all of them: 8-way conflicts
//! segments 9, 18, 36       met by neither: element (r, c) lies in bank c ^ r
//! ```
//!
//! Over GF(2) segments that avoid both sides always exist. While neither side together with the segments so far fills the
//! space, take a vector outside both; two proper subspaces never cover a space: with `a` outside the first and `b` outside
//! the second, one of `a`, `b`, `a ^ b` is outside both. A wavefront moves at most 128 bytes, so the sides are never larger
//! than the banks, and both accesses come out without conflicts, which is the minimum.
//!
//! Source: arXiv 2505.23819, "Optimal swizzling" (the `e ^ f` of its proof is our `a ^ b`). Beyond it: if the two layouts
//! share too few registers for 16 bytes, one side is still widened by its registers that are lanes of the other side.

use super::conversion::{XorTable, check, differences, xor_of};
use super::matrix::{Span, combine, intersection};
use super::{Layout, LayoutError, Level, Place};

/// Bits of the index of a byte in the row of all banks: 32 banks of 4 bytes.
const ROW_BITS: usize = 7;
/// Bits of the index of a byte in a bank.
const WORD_BITS: usize = 2;
/// Bits of the index of a byte in the widest access of a thread: 16 bytes.
const WIDEST_BITS: usize = 4;
/// What two barriers cost, in halves of an issue slot.
const BARRIERS: u32 = 64;

/// Which element lies where: a linear bijection between offsets, in elements, and row-major indices of the tile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Memory {
    columns: Vec<u64>,
    offsets: Span,
}

impl Memory {
    /// The memory in which bit `i` of the offset stands for the element `columns[i]`, a row-major index. `None` if the
    /// columns are not independent, or are more than 31.
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

    /// The memory in which a store from `src` and a load to `dst` are widest and free of bank conflicts.
    ///
    /// # Errors
    /// As [`conversion`](super::conversion()).
    pub fn swizzled(src: &Layout, dst: &Layout, element_bits: u32) -> Result<Memory, LayoutError> {
        check(src, dst, element_bits)?;
        let columns = swizzle(&Side::source(src), &Side::destination(src, dst), byte_bits(element_bits));
        Ok(Memory { offsets: Span::of(&columns), columns })
    }

    /// By offset bit: the row-major index it stands for.
    pub fn columns(&self) -> &[u64] {
        &self.columns
    }

    /// The row-major index of the element at `offset`, in elements.
    pub fn element(&self, offset: u32) -> u64 {
        combine(&self.columns, offset.into())
    }

    /// The offset, in elements, of an element; `None` if the memory does not hold it.
    pub fn offset(&self, element: u64) -> Option<u32> {
        self.offsets.solve(element).map(|offset| offset as u32)
    }

    /// The number of elements held.
    pub fn elements(&self) -> u32 {
        1 << self.columns.len()
    }
}

/// A store of a tile to shared memory or a load from it, thread by thread.
///
/// Instruction `i` of the thread (lane, warp, block) moves its `i.registers`, in this order, to or from consecutive elements
/// from the offset `i.offset ^ thread(lane, warp, block)` on, which is a multiple of [`Access::vector`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Access {
    /// Elements an instruction moves; at most 16 bytes.
    pub vector: u32,
    /// The part of the offset, in elements, that depends on the thread.
    pub thread: XorTable,
    /// The instructions of every thread.
    pub instructions: Vec<Instruction>,
    /// Lanes and warps with one of these bits set have nothing to do: of a store, what they hold are copies.
    pub idle: Place,
    /// Wavefronts (rows of 128 bytes) that each instruction of a warp takes.
    pub wavefronts: u32,
    /// How many of them are due to bank conflicts.
    pub bank_conflicts: u32,
}

/// One instruction of an [`Access`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instruction {
    /// The registers moved, in the order of memory.
    pub registers: Vec<u32>,
    /// Xor into the thread's part of the offset, in elements.
    pub offset: u32,
}

impl Access {
    /// Splits the offset of `instruction` into a part to xor into the thread's and a part to add after that, which an
    /// address can carry as an immediate: `(thread ^ xor) + add`.
    pub fn split(&self, instruction: &Instruction) -> (u32, u32) {
        let touched = self.thread.touched();
        (instruction.offset & touched, instruction.offset & !touched)
    }

    /// Wavefronts of all instructions of a warp.
    pub fn total_wavefronts(&self) -> u32 {
        self.wavefronts * self.instructions.len() as u32
    }

    /// The best access to `memory` by one side: of all vector widths the fewest wavefronts, then the widest.
    fn new(side: &Side, memory: &Memory, byte_bits: usize, skip_copies: bool) -> Option<Access> {
        let widest = WIDEST_BITS - byte_bits;
        let registers = Span::of(&side.registers);
        let offsets = |bases: &[u64]| bases.iter().map(|&basis| memory.offset(basis)).collect::<Option<Vec<u32>>>();
        let thread = XorTable { lane: offsets(&side.lanes)?, warp: offsets(&side.warps)?, block: offsets(&side.blocks)? };
        let aligned = (thread.touched() | 1 << widest).trailing_zeros() as usize;
        let vectors: Vec<u64> = memory.columns.iter().take(aligned).map_while(|&column| registers.solve(column)).collect();
        let idle = if skip_copies { side.copies() } else { Place::default() };
        let access = |width: usize| -> Option<Access> {
            let (wavefronts, bank_conflicts) = wavefronts(&thread.lane, idle.lane, width, byte_bits);
            let instructions = instructions(&vectors[..width], side, memory)?;
            Some(Access { vector: 1 << width, thread: thread.clone(), instructions, idle, wavefronts, bank_conflicts })
        };
        (0..=vectors.len()).rev().filter_map(access).min_by_key(Access::total_wavefronts)
    }
}

/// A conversion through shared memory: `store` by all threads, a barrier, `load`, then `copies`. Before the memory is used
/// again there has to be another barrier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedPlan {
    /// Bits of an element.
    pub element_bits: u32,
    /// Where the elements lie. In a cluster each block keeps its own elements, as xor differences from the one at
    /// `(0, 0, 0, block)` in the source layout.
    pub memory: Memory,
    /// From the source's registers.
    pub store: Access,
    /// To the destination's registers.
    pub load: Access,
    /// Destination registers that hold copies: `(register, the register it copies)`, after the load.
    pub copies: Vec<(u32, u32)>,
    /// Each warp reads only what it wrote itself: the barrier between store and load may be the warp's own.
    pub within_warps: bool,
}

impl SharedPlan {
    /// The plan with the memory that fits the two layouts best, [`Memory::swizzled`].
    ///
    /// # Errors
    /// As [`conversion`](super::conversion()).
    pub fn new(src: &Layout, dst: &Layout, element_bits: u32) -> Result<SharedPlan, LayoutError> {
        Self::with_memory(src, dst, element_bits, Memory::swizzled(src, dst, element_bits)?)
    }

    /// The plan with a given memory.
    ///
    /// # Errors
    /// As [`conversion`](super::conversion()); also [`LayoutError::NotSurjective`] if `memory` lacks elements of a block.
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

    /// Issue slots of a warp, in halves: a wavefront takes two.
    pub fn cost(&self) -> u32 {
        let barrier = if self.within_warps { BARRIERS / 4 } else { BARRIERS };
        2 * (self.store.total_wavefronts() + self.load.total_wavefronts()) + barrier
    }
}

/// What the threads of a block hold, relative to what the source's thread 0 of the block holds.
struct Side {
    registers: Vec<u64>,
    lanes: Vec<u64>,
    warps: Vec<u64>,
    blocks: Vec<u64>,
}

impl Side {
    fn source(src: &Layout) -> Side {
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

    /// Lanes of one wavefront of accesses of `1 << width` elements: as many as fill the row, from the lowest.
    fn wavefront(&self, width: usize, byte_bits: usize) -> &[u64] {
        &self.lanes[..wavefront_lanes(self.lanes.len(), width, byte_bits)]
    }

    /// The bits of lane and warp that only make copies, registers counted first.
    fn copies(&self) -> Place {
        let mut span = Span::of(&self.registers);
        let mut free =
            |bases: &[u64]| bases.iter().enumerate().filter(|&(_, &basis)| !span.grow(basis)).fold(0, |mask, (bit, _)| mask | 1 << bit);
        Place { lane: free(&self.lanes), warp: free(&self.warps), ..Place::default() }
    }

    /// By register bit: the registers without copies that hold the same element.
    fn register_sources(&self) -> Vec<u32> {
        let span = Span::of(&self.registers);
        self.registers.iter().map(|&basis| span.solve(basis).unwrap_or(0) as u32).collect()
    }

    fn register_copies(&self) -> Vec<(u32, u32)> {
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

/// Of accesses of at most a word all lanes share a wavefront; of 8 bytes half, of 16 bytes a quarter.
fn wavefront_lanes(lanes: usize, width: usize, byte_bits: usize) -> usize {
    lanes.min(ROW_BITS - (width + byte_bits).max(WORD_BITS))
}

/// Wavefronts of one instruction of a warp, and how many of them bank conflicts add. The words of one wavefront are an
/// affine space, so each bank that is touched is touched by equally many: two to the ranks' difference.
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

/// The instructions that move each register without copies once, in vectors made of the register masks `vectors`.
fn instructions(vectors: &[u64], side: &Side, memory: &Memory) -> Option<Vec<Instruction>> {
    let masks: Vec<u32> = vectors.iter().map(|&mask| mask as u32).collect();
    let mut spanned = Span::of(vectors);
    let low = (1 << vectors.len()) - 1;
    let mut between = Vec::new();
    for (bit, &source) in side.register_sources().iter().enumerate() {
        if source == 1 << bit && spanned.grow(source.into()) {
            // Starts of vectors: the register's place within its vector is taken off.
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
    // Registers that both sides hold, as long as no thread's part of an index reaches into them.
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

    // A complement of the vector that contains the wide side's threads, so that its vectors are aligned in every thread; the
    // narrow side's vector is free of its threads already. Registers come last, to become segments and so immediates.
    let mut placed = Span::of(&columns);
    let all = wide.threads().chain(narrow.threads()).chain(src.registers.iter().copied());
    let rest: Vec<u64> = all.filter(|&basis| placed.grow(basis)).collect();

    // Vectors narrower than a word: what else is in the word, the first of the banks' columns below, does not matter.
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

/// More of the vector for one side: its registers that lie across the lanes of one wavefront of the other side, whose banks
/// they are then.
fn widen(common: &[u64], wide: &Side, narrow: &Side, byte_bits: usize) -> Vec<u64> {
    let mut taken = Span::of(common);
    taken.extend(wide.threads());
    let mut further = intersection(&wide.registers, narrow.wavefront(common.len(), byte_bits));
    further.retain(|&vector| taken.grow(vector));
    further.truncate((WIDEST_BITS - byte_bits).saturating_sub(common.len()));
    further
}

/// `count` vectors of span(`space`) that stay independent modulo each of the two subspaces: a common complement, built
/// greedily as the module's text proves. Fewer if a side and they fill the space.
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
