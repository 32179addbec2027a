//! Embeddings and the gradient of their table.

use galatea::prelude::*;
use kernel_library::{embedding, embedding_backward};

use super::{agree, devices, sample};
use crate::Real;

const VOCABULARY: usize = 6;
const PADDING: usize = 2;
/// Some twice, the padding, and two that the table does not have.
const INDICES: [i64; 6] = [3, 0, 3, PADDING as i64, -1, VOCABULARY as i64];

/// The second size has several blocks in a row.
fn embeddings<T: Real>(shapes: &[(&[usize], usize)]) {
    for device in devices() {
        for &(shape, columns) in shapes {
            let count: usize = shape.iter().product();
            let (table, rows) = sample::<T>(device, &[VOCABULARY, columns], 2.0);
            let indices = device.tensor_from(&INDICES[..count], shape).unwrap();
            let full = [shape, &[columns]].concat();
            let row_of = |token: usize| usize::try_from(INDICES[token]).ok().filter(|row| *row < VOCABULARY);
            agree(device, &embedding(&indices, &table).unwrap(), &full, 0.0, |i| {
                row_of(i / columns).map_or(0.0, |row| rows[row * columns + i % columns].wide())
            });

            let (dy, d) = sample::<T>(device, &full, 2.0);
            for padding in [None, Some(PADDING)] {
                let want = |i: usize| {
                    let (row, column) = (i / columns, i % columns);
                    let tokens = (0..count).filter(|token| row_of(*token) == Some(row) && padding != Some(row));
                    tokens.map(|token| d[token * columns + column].wide()).sum()
                };
                let dtable = embedding_backward(&dy, &indices, &table, padding).unwrap();
                agree(device, &dtable, &[VOCABULARY, columns], 4.0, want);
            }
        }
    }
}

#[test]
fn embeddings_of_tensors() {
    embeddings::<f32>(&[(&[], 7), (&[6], 33), (&[2, 3], 33), (&[3], 1100)]);
    embeddings::<f16>(&[(&[2, 3], 33)]);
    embeddings::<bf16>(&[(&[3, 1, 2], 33)]);
}
