//! Embeddings and the gradient of their table.

use galatea::prelude::*;
use kernel_library::kernels;

use crate::{COLUMNS, Real, check, devices, numbers};

const PADDING: i64 = 2;
/// Twice the same, the padding, and some that the table has not: one whose product with 256 columns is 0.
const INDICES: [i64; 9] = [3, 0, 3, PADDING, 5, -1, 1 << 62, 6, 3];
const VOCABULARY: usize = 6;

fn embeddings<T: Real>() {
    for device in devices() {
        for columns in COLUMNS {
            let table = numbers::<T>(VOCABULARY * columns, 2.0, 1);
            let dy = numbers::<T>(INDICES.len() * columns, 2.0, 2);
            let (dtable, indices, ddy) = (device.tensor(&table).unwrap(), device.tensor(&INDICES).unwrap(), device.tensor(&dy).unwrap());
            let mut y = device.empty_like(&ddy).unwrap();
            kernels::embedding(&dtable, &indices, &mut y, VOCABULARY, columns)
                .grid(|config| (INDICES.len(), cdiv(columns, config.BLOCK_SIZE)))
                .launch()
                .unwrap();
            let row = |token: usize| usize::try_from(INDICES[token]).ok().filter(|index| *index < VOCABULARY);
            for (i, got) in y.to_vec().unwrap().into_iter().enumerate() {
                let want = row(i / columns).map_or(0.0, |row| table[row * columns + i % columns].wide());
                assert_eq!(got.wide(), want, "{device}: element {i} of {columns} columns");
            }

            let mut gradient = device.tensor(&vec![1.0f32; table.len()]).unwrap();
            kernels::embedding_backward::<T, f32, 256>(&ddy, &indices, &mut gradient, VOCABULARY, columns, PADDING)
                .grid((INDICES.len(), cdiv(columns, 256)))
                .launch()
                .unwrap();
            let mut want = vec![1.0; table.len()];
            for (token, dy) in dy.chunks(columns).enumerate().filter(|(token, _)| INDICES[*token] != PADDING) {
                let row = row(token).map_or(&mut [][..], |row| &mut want[row * columns..][..columns]);
                row.iter_mut().zip(dy).for_each(|(sum, d)| *sum += d.wide());
            }
            check(device, &gradient.to_vec().unwrap(), 1.0, |i| want[i]);
        }
    }
}

#[test]
fn rows_of_a_table() {
    embeddings::<f32>();
    embeddings::<f16>();
    embeddings::<bf16>();
}
