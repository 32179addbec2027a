//! The cost of tiles as the rule of a tuned product: what is timed for a shape, and the result, on simulated GPUs.

mod samples;

use galatea::prelude::*;
use galatea::tune::Outcome;
use kernel_library::tiling::{self, Machine, Product, Tile};
use samples::devices;

/// A GPU on which few tiles take several waves.
const SMALL: Machine = Machine { multiprocessors: 4, ..Machine::H200 };

#[autotune(
    configs = [
        Config { ROWS: 64, COLUMNS: 64, BLOCK: 64, num_warps: 4 },
        Config { ROWS: 32, COLUMNS: 64, BLOCK: 64, num_warps: 4 },
        Config { ROWS: 16, COLUMNS: 64, BLOCK: 64, num_warps: 4 },
        Config { ROWS: 64, COLUMNS: 64, BLOCK: 64, num_warps: 2 },
    ],
    key = [rows, columns, inner],
    prune = top_k(1, |config| {
        let tile = Tile { rows: config.ROWS, columns: config.COLUMNS, block: config.BLOCK, num_warps: config.num_warps };
        tiling::cost(tile, Product { rows, columns, inner, element_bytes: 2 }, &SMALL)
    }),
)]
#[kernel]
fn product<const ROWS: usize, const COLUMNS: usize, const BLOCK: usize>(
    a: Ptr<f16>,
    b: Ptr<f16>,
    y: PtrMut<f16>,
    rows: usize,
    columns: usize,
    inner: usize,
) {
    let row = (program_id(0) * ROWS + arange(0, ROWS)).col();
    let column = (program_id(1) * COLUMNS + arange(0, COLUMNS)).row();
    let mut total = zeros::<f32>([ROWS, COLUMNS]);
    for first in range(0, inner, BLOCK) {
        let k = first + arange(0, BLOCK);
        let left = load(a + row * inner + k.row(), mask = (row < rows) & (k.row() < inner));
        total += dot(left, load(b + k.col() * columns + column, mask = (k.col() < inner) & (column < columns)));
    }
    store(y + row * columns + column, total as f16, mask = (row < rows) & (column < columns));
}

#[test]
fn a_shape_times_its_cheapest_tile() {
    for device in devices() {
        // Of 130 rows, 64 in a tile take two waves, 32 three and 16 five. Nine rows need a tile of 16.
        for ([rows, columns, inner], cheapest) in [([130, 70, 33], 0), ([9, 70, 33], 2)] {
            let a: Vec<f16> = (0..rows * inner).map(|at| f16::from_f32((at % 7) as f32 - 3.0)).collect();
            let b: Vec<f16> = (0..inner * columns).map(|at| f16::from_f32((at % 5) as f32 - 2.0)).collect();
            let (x, w) = (device.tensor_from(&a, [rows, inner]).unwrap(), device.tensor_from(&b, [inner, columns]).unwrap());
            let mut y = device.full([rows, columns], f16::NAN).unwrap();
            let grid = |config: product::Config| (cdiv(rows, config.ROWS), cdiv(columns, config.COLUMNS));
            let report = product(&x, &w, &mut y, rows, columns, inner).grid(grid).report().unwrap();
            product(&x, &w, &mut y, rows, columns, inner).grid(grid).launch().unwrap();
            if !device.is_cpu() {
                for (at, trial) in report.trials.iter().enumerate() {
                    assert_eq!(trial.outcome == Outcome::Pruned, at != cheapest, "{report}");
                }
                assert_eq!(report.chosen().map(|trial| trial.config), Some(report.trials[cheapest].config), "{report}");
            }
            // Sums of so few small integers are exact.
            for (at, found) in y.to_vec().unwrap().into_iter().enumerate() {
                let expected: f32 = (0..inner).map(|k| a[at / columns * inner + k].to_f32() * b[k * columns + at % columns].to_f32()).sum();
                assert_eq!(found.to_f32(), expected, "{device:?}: element {at} of {rows} x {columns}");
            }
        }
    }
}
