//! Which tiles a matrix product should try: a cost model of the time that a tile takes for a shape, to tune over few configurations.
//!
//! The best tile depends on the shape. A GPU runs as many tiles at once as it has multiprocessors, so that 129 to 264 tiles take two waves, whatever
//! the last wave leaves idle. Large tiles read less from the L2 and from shared memory for each operation. [`cost`] weighs both.
//!
//! `prune = top_k(..)` of [`autotune`](galatea::autotune) takes a cost, so a kernel lists the tiles of all shapes, and each shape times a few of them:
//!
//! ```
//! use galatea::prelude::*;
//! use kernel_library::tiling::{self, Machine, Product, Tile};
//!
//! #[autotune(
//!     configs = [
//!         Config { ROWS: 64, COLUMNS: 64, BLOCK: 64, num_warps: 4 },
//!         Config { ROWS: 32, COLUMNS: 64, BLOCK: 64, num_warps: 4 },
//!         Config { ROWS: 16, COLUMNS: 64, BLOCK: 64, num_warps: 4 },
//!     ],
//!     key = [rows, columns, inner],
//!     prune = top_k(2, |config| {
//!         let tile = Tile { rows: config.ROWS, columns: config.COLUMNS, block: config.BLOCK, num_warps: config.num_warps };
//!         tiling::cost(tile, Product { rows, columns, inner, element_bytes: 2 }, &Machine::H200)
//!     }),
//! )]
//! #[kernel]
//! fn product<const ROWS: usize, const COLUMNS: usize, const BLOCK: usize>(
//!     a: Ptr<f16>, b: Ptr<f16>, y: PtrMut<f16>, rows: usize, columns: usize, inner: usize,
//! ) {
//!     let row = (program_id(0) * ROWS + arange(0, ROWS)).col();
//!     let column = (program_id(1) * COLUMNS + arange(0, COLUMNS)).row();
//!     let mut total = zeros::<f32>([ROWS, COLUMNS]);
//!     for first in range(0, inner, BLOCK) {
//!         let k = first + arange(0, BLOCK);
//!         let left = load(a + row * inner + k.row(), mask = (row < rows) & (k.row() < inner));
//!         total += dot(left, load(b + k.col() * columns + column, mask = (k.col() < inner) & (column < columns)));
//!     }
//!     store(y + row * columns + column, total as f16, mask = (row < rows) & (column < columns));
//! }
//!
//! # fn main() -> galatea::Result<()> {
//! let device = Device::cpu();
//! let (a, b) = (device.full([3, 5], f16::from_f32(2.0))?, device.full([5, 4], f16::from_f32(0.5))?);
//! let mut y = device.zeros::<f16>([3, 4])?;
//! product(&a, &b, &mut y, 3, 4, 5).grid(|config| (cdiv(3, config.ROWS), cdiv(4, config.COLUMNS))).launch()?;
//! assert_eq!(y.to_vec()?, [f16::from_f32(5.0); 12]);
//! # Ok(())
//! # }
//! ```
//!
//! # The model
//!
//! A tile takes the time of the slowest of four units, and its result is stored behind that. The product takes that time in each wave, or the time in
//! which memory moves all operands once. The rates are those of a Hopper GPU for each clock cycle. The model follows the cost model of DeepGEMM, and
//! adds the rate of small instructions and the store.
//!
//! | unit | what it moves or computes | rate |
//! |---|---|---|
//! | tensor cores | `wgmma`, with a least time for fewer than 64 columns | 4096 operations of 16-bit floats |
//! | shared memory | both operands, written by copies and read by `wgmma`; by `mma.sync` for fewer than 64 rows, which reads more often | 128 bytes |
//! | L2 | both operands, for as many multiprocessors as have a tile | 64 bytes each, 6150 of all |
//! | memory | both operands and the result, once | 2500 bytes of all |
//!
//! Two multiprocessors that share an operand, tiles that are no power of two, and a split of the inner axis are not part of the model.

/// A product of matrices: `[rows, inner]` times `[inner, columns]`, with elements of so many bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Product {
    /// Rows of the result.
    pub rows: usize,
    /// Columns of the result.
    pub columns: usize,
    /// The extent that both operands share.
    pub inner: usize,
    /// Bytes of an element of both operands and of the result: 2 for `f16` and `bf16`.
    pub element_bytes: usize,
}

/// A configuration of a product: each program computes `rows` times `columns` elements, in steps of `block` of the inner extent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tile {
    /// Rows of the result in a program.
    pub rows: usize,
    /// Columns of the result in a program.
    pub columns: usize,
    /// The part of the inner extent that one iteration loads, in elements.
    pub block: usize,
    /// Warps of a program.
    pub num_warps: u32,
}

/// The resources of a GPU that decide on tiles.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Machine {
    /// The number of multiprocessors, each of which runs one large tile at a time.
    pub multiprocessors: usize,
    /// Bytes of shared memory for a program.
    pub shared_bytes: usize,
    /// Bytes that memory moves in a clock cycle of the multiprocessors.
    pub memory_bytes_per_clock: f64,
    /// Bytes that the L2 gives to all multiprocessors in a clock cycle.
    pub l2_bytes_per_clock: f64,
}

impl Machine {
    /// An H200, and an H100 with 132 multiprocessors except for its slower memory.
    pub const H200: Machine =
        Machine { multiprocessors: 132, shared_bytes: 227 << 10, memory_bytes_per_clock: 2500.0, l2_bytes_per_clock: 6150.0 };
}

/// The number of tiles that [`candidates`] gives at most.
pub const MOST: usize = 12;

/// Rows, columns, blocks of 128 bytes of the inner extent, and warps. Of tiles with the same cost the first one is better: the larger one, and then
/// the one with fewer stages.
const TILES: [(usize, usize, usize, u32); 18] = [
    (128, 256, 1, 8),
    (256, 128, 1, 8),
    (128, 128, 1, 8),
    (128, 128, 1, 4),
    (64, 256, 1, 4),
    (256, 64, 1, 8),
    (64, 128, 1, 4),
    (128, 64, 1, 4),
    (64, 128, 2, 4),
    (128, 64, 2, 4),
    (64, 64, 2, 4),
    (64, 64, 1, 4),
    (32, 128, 2, 4),
    (32, 64, 2, 4),
    (16, 128, 2, 4),
    (64, 32, 2, 4),
    (16, 64, 2, 4),
    (16, 32, 2, 4),
];

/// Accumulators in `f32` that a thread may hold: more leave no registers for operands.
const MOST_ACCUMULATORS: usize = 128;
/// Accumulators of all threads: half of the registers of a multiprocessor.
const MOST_ELEMENTS: usize = 1 << 15;
/// Bytes for barriers.
const BARRIER_BYTES: usize = 1 << 10;
/// Bytes of a row of the inner extent that a copy swizzles as one unit.
const ROW_BYTES: usize = 128;
/// The least cycles of a `wgmma` of 32 bytes of the inner extent, if it has fewer than 64 columns and its operands are in shared memory.
const NARROW_STEP: f64 = 75.0;
/// Cycles from the last operation of a tile to its stores, and to the first operation of the next tile.
const BETWEEN_TILES: f64 = 800.0;
/// Candidates that may take more than twice the time of the best one are not worth a measurement.
const FAR_BEHIND: f64 = 2.0;

impl Tile {
    /// The number of blocks of both operands that fit into shared memory beside a part of the result.
    ///
    /// ```
    /// # use kernel_library::tiling::{Machine, Tile};
    /// let tile = Tile { rows: 128, columns: 256, block: 64, num_warps: 8 };
    /// assert_eq!(tile.stages(2, &Machine::H200), 4);
    /// ```
    #[must_use]
    pub fn stages(&self, element_bytes: usize, machine: &Machine) -> usize {
        // The result leaves through two buffers of 32 columns of 16-bit floats.
        let result = self.rows.saturating_mul(2 * 32 * 2).saturating_add(BARRIER_BYTES);
        let stage = self.rows.saturating_add(self.columns).saturating_mul(self.block).saturating_mul(element_bytes);
        machine.shared_bytes.saturating_sub(result) / stage.max(1)
    }

    /// Whether registers and shared memory suffice, and the tile is not larger than the result needs.
    fn fits(&self, product: &Product, machine: &Machine) -> bool {
        let needed = |extent: usize, least: usize| extent.checked_next_power_of_two().unwrap_or(usize::MAX).max(least);
        let (elements, threads) = (self.rows.saturating_mul(self.columns), 32usize.saturating_mul(self.num_warps as usize));
        let least_stages = if elements < 128 * 192 { 4 } else { 3 };
        self.rows.min(self.columns) > 0
            && elements <= threads.saturating_mul(MOST_ACCUMULATORS).min(MOST_ELEMENTS)
            && self.stages(product.element_bytes, machine) >= least_stages
            && self.rows <= needed(product.rows, 16)
            && self.columns <= needed(product.columns, 32)
    }
}

/// The clock cycles that a product may take in tiles of this kind; infinite if the tile needs too many registers or too much shared memory, or is more
/// than twice as large as the result along an axis.
#[must_use]
pub fn cost(tile: Tile, product: Product, machine: &Machine) -> f64 {
    if !tile.fits(&product, machine) {
        return f64::INFINITY;
    }
    let Product { rows, columns, inner, element_bytes } = product;
    let bytes = element_bytes as f64;
    let inner_bytes = inner as f64 * bytes;
    let tiles = rows.div_ceil(tile.rows) as f64 * columns.div_ceil(tile.columns) as f64;
    let multiprocessors = machine.multiprocessors as f64;
    let waves = (tiles / multiprocessors).ceil();

    // `mma.sync` of a tile of fewer rows is slower than `wgmma`, but its reads of shared memory take longer still.
    let least_step = if tile.rows >= 64 && tile.columns < 64 { NARROW_STEP } else { 0.0 };
    let tensor = tile.rows as f64 / 64.0 * (inner_bytes / 32.0) * (tile.columns as f64 / 2.0).max(least_step);
    // A warp of `mma.sync` has 16 rows, so that each 16 rows of a tile read all columns.
    let readers = if tile.rows < 64 { tile.rows.div_ceil(16) } else { 1 };
    let shared = inner_bytes * (tile.rows + tile.rows.max(64) + tile.columns * (1 + readers)) as f64 / 128.0;
    let l2_rate = (machine.l2_bytes_per_clock / tiles.min(multiprocessors)).min(64.0);
    let l2 = inner_bytes * (tile.rows.min(rows) + tile.columns.min(columns)) as f64 / l2_rate;
    let store = (tile.rows * tile.columns) as f64 * bytes / 64.0 + BETWEEN_TILES;
    let in_waves = waves * (tensor.max(shared).max(l2) + store);

    let operands = rows as f64 * inner as f64 + inner as f64 * columns as f64 + rows as f64 * columns as f64;
    let memory = operands * bytes / machine.memory_bytes_per_clock;
    // A tenth of the smaller one, because the two do not overlap at the start and at the end.
    in_waves.max(memory) + 0.1 * in_waves.min(memory)
}

/// The cost for the kernels of this crate: that of 16-bit floats, for the next power of two of `rows` of all batches.
///
/// Numbers of rows that share a tuning key thus have the same candidates. All numbers of rows up to 16 take the same tiles.
pub(crate) fn cost_in_bucket([rows, columns, block]: [usize; 3], num_warps: u32, shape: [usize; 3], batches: usize) -> f64 {
    let bucket = |extent: usize| extent.checked_next_power_of_two().unwrap_or(extent);
    let tile = Tile { rows, columns, block, num_warps };
    let product = Product { rows: bucket(shape[0]).max(16), columns: shape[1], inner: shape[2], element_bytes: 2 };
    if !tile.fits(&product, &Machine::H200) {
        return f64::INFINITY;
    }
    // The matrices of a batch are further rows.
    let tiles_of_rows = product.rows.div_ceil(rows).saturating_mul(bucket(batches).max(1));
    cost(tile, Product { rows: tiles_of_rows.saturating_mul(rows), ..product }, &Machine::H200)
}

/// The tiles that may be the fastest for a product, at most [`MOST`], the most promising first.
///
/// ```
/// # use kernel_library::tiling::{Machine, Product, candidates};
/// let product = Product { rows: 4096, columns: 4096, inner: 4096, element_bytes: 2 };
/// let best = candidates(product, &Machine::H200)[0];
/// assert_eq!((best.rows, best.columns, best.block, best.num_warps), (128, 256, 64, 8));
/// ```
#[must_use]
pub fn candidates(product: Product, machine: &Machine) -> Vec<Tile> {
    let block = (ROW_BYTES / product.element_bytes.max(1)).max(1);
    let tiles = TILES.map(|(rows, columns, blocks, num_warps)| Tile { rows, columns, block: block * blocks, num_warps });
    let mut costs: Vec<(f64, Tile)> =
        tiles.into_iter().map(|tile| (cost(tile, product, machine), tile)).filter(|(cost, _)| cost.is_finite()).collect();
    // The sort is stable, so that the order of `TILES` decides between equal costs.
    costs.sort_by(|(one, _), (other, _)| one.total_cmp(other));
    let limit = costs.first().map_or(f64::INFINITY, |(least, _)| FAR_BEHIND * least);
    costs.into_iter().take_while(|(cost, _)| *cost <= limit).take(MOST).map(|(_, tile)| tile).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn product([rows, columns, inner]: [usize; 3]) -> Product {
        Product { rows, columns, inner, element_bytes: 2 }
    }

    fn best(shape: [usize; 3]) -> (usize, usize, u32) {
        let tile = candidates(product(shape), &Machine::H200)[0];
        (tile.rows, tile.columns, tile.num_warps)
    }

    #[test]
    fn squares_fill_whole_waves() {
        // 64 tiles; 128 tiles in one wave; then the largest tile, with 128 tiles for each wave.
        assert_eq!(best([512; 3]), (64, 64, 4));
        assert_eq!(best([1024; 3]), (64, 128, 4));
        assert_eq!(best([1000, 1003, 1017]), (64, 128, 4));
        for n in [2048, 4096, 6144, 8192, 16_384] {
            assert_eq!(best([n; 3]), (128, 256, 8), "{n}");
        }
        assert_eq!(best([4096, 4096, 512]), (128, 256, 8));
        // The 129th to 132nd tile still run at once, the 133rd does not.
        let tile = Tile { rows: 128, columns: 256, block: 64, num_warps: 8 };
        let of_tiles = |tiles: usize| cost(tile, product([128 * tiles, 256, 8192]), &Machine::H200);
        assert!(of_tiles(132) < 1.1 * of_tiles(128) && of_tiles(133) > 1.8 * of_tiles(132));
    }

    #[test]
    fn short_products_pay_for_their_stores() {
        let tile = Tile { rows: 128, columns: 256, block: 64, num_warps: 8 };
        // 1024 cycles of products, 1024 of stores, and 800 between tiles.
        assert!((2848.0..2860.0).contains(&cost(tile, product([128, 256, 64]), &Machine::H200)));
    }

    #[test]
    fn few_rows_have_low_tiles() {
        assert_eq!(best([64, 4096, 4096]), (64, 64, 4));
        assert_eq!(best([128, 4096, 4096]), (64, 64, 4));
        for rows in [1, 8, 16] {
            for tile in candidates(product([rows, 8192, 8192]), &Machine::H200) {
                assert_eq!(tile.rows, 16, "{rows}");
            }
        }
        // However the product is split, memory moves 134.7 MB.
        let tile = Tile { rows: 16, columns: 64, block: 128, num_warps: 4 };
        assert!((53_900.0..60_000.0).contains(&cost(tile, product([16, 8192, 8192]), &Machine::H200)));
        // Long columns of a result take their tiles from the other axis.
        assert_eq!((best([16_384, 128, 4096]), best([128, 16_384, 4096])), ((128, 128, 8), (128, 128, 8)));
    }

    #[test]
    fn every_shape_has_a_few_candidates_that_fit() {
        let extents = [0, 1, 7, 16, 100, 128, 1000, 4096, 16_384, 1 << 40, usize::MAX];
        let pairs = extents.map(|rows| extents.map(|columns| [rows, columns])).into_iter().flatten();
        for [rows, columns] in pairs {
            for (inner, element_bytes) in extents.iter().flat_map(|inner| [1, 2, 4].map(|bytes| (*inner, bytes))) {
                let product = Product { rows, columns, inner, element_bytes };
                let found = candidates(product, &Machine::H200);
                assert!((1..=MOST).contains(&found.len()), "{product:?}: {found:?}");
                for (at, tile) in found.iter().enumerate() {
                    assert!(!found[..at].contains(tile) && tile.stages(element_bytes, &Machine::H200) >= 3, "{product:?}: {tile:?}");
                    assert!(tile.rows * tile.columns / (32 * tile.num_warps as usize) <= 128, "{tile:?}");
                    assert!(cost(*tile, product, &Machine::H200) <= 2.0 * cost(found[0], product, &Machine::H200), "{product:?}: {tile:?}");
                }
            }
        }
    }

    #[test]
    fn stages_are_those_that_fit_beside_the_result() {
        let stages = |rows, columns| Tile { rows, columns, block: 64, num_warps: 8 }.stages(2, &Machine::H200);
        let found = [(128, 256), (256, 128), (128, 128), (64, 256), (64, 128)].map(|(rows, columns)| stages(rows, columns));
        assert_eq!(found, [4, 4, 6, 5, 9]);
        // 2048 bytes a stage: 113 would leave no byte for barriers.
        assert_eq!(stages(8, 8), 112);
    }

    #[test]
    fn what_cannot_run_costs_infinitely_much() {
        let of = |rows, columns, block, num_warps| cost(Tile { rows, columns, block, num_warps }, product([4096; 3]), &Machine::H200);
        assert!(of(128, 256, 64, 8).is_finite());
        assert!(of(128, 256, 64, 4).is_infinite()); // 256 accumulators in a thread
        assert!(of(128, 256, 128, 8).is_infinite()); // two stages
        assert!(of(256, 256, 64, 16).is_infinite()); // no registers beside the accumulators
        for strange in [of(0, 64, 64, 4), of(64, 0, 64, 4), of(usize::MAX, 64, 64, 4), of(64, 64, usize::MAX, 4)] {
            assert!(strange.is_infinite());
        }
        assert!(cost(Tile { rows: 64, columns: 64, block: 64, num_warps: 4 }, product([16, 4096, 4096]), &Machine::H200).is_infinite());
    }
}
