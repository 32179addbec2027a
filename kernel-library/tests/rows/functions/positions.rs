//! Rotary position embeddings.

use galatea::prelude::*;
use kernel_library::{rope, rope_backward};

use super::{agree, devices, of_every_type, sample};
use crate::Real;

/// Without an axis of tokens, with one, and with two; five heads are those of two programs.
const HEADS: [&[usize]; 3] = [&[5, 10], &[3, 5, 10], &[2, 3, 5, 10]];
const ROWS: usize = 4;

fn ropes<T: Real>(shapes: &[&[usize]]) {
    for device in devices() {
        for shape in shapes {
            let (tokens, [heads, head]) = shape.split_at(shape.len() - 2) else { unreachable!("there are two axes") };
            let pairs = head / 2;
            let (x, host) = sample::<T>(device, shape, 2.0);
            let ((cosine, c), (sine, s)) = (sample::<f32>(device, &[ROWS, pairs], 1.0), sample::<f32>(device, &[ROWS, pairs], 1.0));
            // The third position is not in the tables.
            let rows: Vec<i64> = (0..tokens.iter().product::<usize>()).map(|token| [1, 3, ROWS as i64, 0, 1, 2][token]).collect();
            let positions = device.tensor_from(&rows, tokens).unwrap();
            // A pair is a complex number.
            let rotated = |i: usize, direction: f64| {
                let (start, at) = (i / head * head, i % head);
                let Some(row) = usize::try_from(rows[i / (heads * head)]).ok().filter(|row| *row < ROWS) else { return 0.0 };
                let angle = row * pairs + at % pairs;
                let (re, im) = (f64::from(c[angle]), f64::from(s[angle]) * direction);
                let [a, b] = [0, pairs].map(|half| host[start + at % pairs + half].wide());
                if at < pairs { a * re - b * im } else { b * re + a * im }
            };
            agree(device, &rope(&x, &positions, &cosine, &sine).unwrap(), shape, 2.0, |i| rotated(i, 1.0));
            agree(device, &rope_backward(&x, &positions, &cosine, &sine).unwrap(), shape, 2.0, |i| rotated(i, -1.0));
        }
    }
}

#[test]
fn rotary_positions_of_tensors() {
    of_every_type!(ropes, HEADS);
}
