//! The combinations of options of [`DotLoop`]: rows of covering arrays, so that all pairs of options appear in each round of cases.
//!
//! The first round of a theme runs by default. `dot_loop_roles` has the options with which a GPU with warpgroup products runs the version with roles.

use std::collections::HashSet;

use galatea::Dtype;

use super::dot_loops::{DotLoop, EPILOGUES, Grid, ORDERS, ROLE_KINDS, Stride, WORKERS};
use super::dots::{KINDS, Kind, kind};
use crate::case::Case;
use crate::covering;

/// The kinds of [`KINDS`], and the other pairs of 8-bit types.
const LOOP_KINDS: [Kind; 15] = {
    let [a, b, c, d, e, f, g, h, i, j] = KINDS;
    let more = [
        kind(Dtype::U8, Dtype::U8, Dtype::I32, ""),
        kind(Dtype::U8, Dtype::I8, Dtype::I32, ""),
        kind(Dtype::I8, Dtype::U8, Dtype::I32, ""),
        kind(Dtype::F8E4M3, Dtype::F8E5M2, Dtype::F32, ""),
        kind(Dtype::F8E5M2, Dtype::F8E5M2, Dtype::F32, ""),
    ];
    let [k, l, m, n, o] = more;
    [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o]
};

/// The kinds whose sums are rounded.
const ROUNDED_KINDS: [Kind; 9] = [KINDS[0], KINDS[1], KINDS[2], KINDS[3], KINDS[4], KINDS[5], KINDS[6], KINDS[8], LOOP_KINDS[14]];

/// So many rounds of cases, each a covering array. All but the first are further cases.
fn rounds<const N: usize>(count: usize, choices: [usize; N], case: impl Fn([usize; N]) -> DotLoop) -> Vec<Case> {
    let mut names = HashSet::new();
    let mut cases = Vec::new();
    for (round, rows) in covering::rounds(choices, count).into_iter().enumerate() {
        for row in rows {
            let drawn = case(row).case();
            if names.insert(drawn.name.clone()) {
                cases.push(Case { is_further: round > 0, ..drawn });
            }
        }
    }
    cases
}

const RESTS: [usize; 3] = [0, 1, 7];
const GRIDS: [Grid; 5] = [[1, 1, 1], [2, 2, 1], [2, 3, 1], [3, 2, 1], [1, 4, 2]];
const TILES: [[usize; 3]; 10] = [
    [64, 32, 32],
    [64, 64, 16],
    [32, 64, 32],
    [16, 64, 64],
    [128, 32, 32],
    [32, 128, 16],
    [16, 16, 128],
    [16, 8, 32],
    [64, 16, 64],
    [48, 24, 40],
];
/// Tiles of which four warps, or eight, have 16 rows or columns each.
const ROLE_TILES: [([usize; 3], u32); 12] = [
    ([64, 32, 32], 4),
    ([64, 64, 16], 4),
    ([16, 64, 64], 4),
    ([64, 16, 64], 4),
    ([16, 128, 16], 4),
    ([128, 32, 32], 4),
    ([32, 128, 32], 4),
    ([64, 128, 16], 4),
    ([128, 16, 32], 8),
    ([128, 64, 16], 8),
    ([16, 128, 32], 8),
    ([32, 128, 64], 8),
];
/// The same of grids of many programs. They are small because of the time that a simulator takes.
const WORKER_TILES: [([usize; 3], u32); 4] = [([64, 16, 16], 4), ([16, 64, 16], 4), ([128, 16, 16], 8), ([16, 128, 16], 8)];

/// The shared memory of a program on `sm_90a`.
const SHARED_BYTES: usize = 227 << 10;

/// Trip counts by number: none, one, and around the number of stages.
fn iterations(number: usize, stages: usize) -> usize {
    [0, 1, stages - 1, stages, stages + 1][number]
}

/// A choice of each option of a case, in the order of the arguments of [`DotLoop`].
fn drawn(
    [kind, a, b, tile, row_rest, column_rest, inner_rest, stride, stages, trips, warps, epilogue, grid, variety]: [usize; 14],
    kinds: &[Kind],
) -> DotLoop {
    let stages = 1 + stages;
    let kind = kinds[kind];
    let [rows, columns, inner] = TILES[tile];
    // An instruction multiplies 32 bytes of a row.
    let inner = if kind.factors[0].bits() == 8 { inner.max(32) } else { inner };
    // A loop that states more stages than memory holds is refused, while the schedule's are as many as fit.
    let [m, n, k] = [rows, columns, inner].map(usize::next_power_of_two);
    let stated_bytes = stages * (m + n) * k * kind.factors[0].bytes();
    DotLoop {
        kind,
        orders: [ORDERS[a], ORDERS[b]],
        tile: [rows, columns, inner],
        rests: [row_rest, column_rest, inner_rest].map(|rest| RESTS[rest]),
        stride: [Stride::Tight, Stride::Padded, Stride::Odd][stride],
        stages,
        is_stated: variety % 2 == 1 && stated_bytes <= SHARED_BYTES,
        iterations: iterations(trips, stages),
        num_warps: [1, 2, 4, 8, 16][warps],
        epilogue: EPILOGUES[epilogue],
        grid: GRIDS[grid % GRIDS.len()],
        is_aligned: variety < 2,
        is_normal: false,
    }
}

pub(super) fn dot_loop() -> Vec<Case> {
    let choices = [LOOP_KINDS.len(), 3, 3, TILES.len(), 3, 3, 3, 3, 5, 5, 5, EPILOGUES.len(), GRIDS.len(), 4];
    rounds(13, choices, |row| drawn(row, &LOOP_KINDS))
}

pub(super) fn dot_loop_roles() -> Vec<Case> {
    // The schedule states the slots of rings, so all stages are its own.
    let choices = [ROLE_KINDS.len(), 3, 3, ROLE_TILES.len(), 3, 3, 3, 1, 5, 5, 1, EPILOGUES.len(), 7, 1];
    rounds(9, choices, |row| {
        let grid = [[1, 1, 1], [2, 3, 1], [1, 3, 2], [3, 1, 1], [1, 2, 1], [2, 2, 1], WORKERS][row[12]];
        let (tile, num_warps) = if grid == WORKERS { WORKER_TILES[row[3] % WORKER_TILES.len()] } else { ROLE_TILES[row[3]] };
        let usual = drawn(std::array::from_fn(|at| if at == 3 { 0 } else { row[at] }), &ROLE_KINDS);
        DotLoop { tile, num_warps, grid, stride: Stride::Padded, is_aligned: true, ..usual }
    })
}

pub(super) fn dot_loop_normal() -> Vec<Case> {
    // The first tiles, which have all ratios of rows to columns.
    let choices = [ROUNDED_KINDS.len(), 3, 3, 6, 3, 3, 3, 2, 5, 5, 5, EPILOGUES.len(), GRIDS.len(), 4];
    rounds(2, choices, |row| DotLoop { is_normal: true, ..drawn(row, &ROUNDED_KINDS) })
}
