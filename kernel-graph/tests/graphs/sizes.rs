//! Large graphs: the time is linear in the number of operations.

use std::time::{Duration, Instant};

use galatea::op;
use galatea::ops::Tensor;
use galatea::prelude::*;
use galatea::{Dim, Dtype};
use kernel_graph::{Level, export, input};

use crate::kernels::silu;
use crate::numbers;

const LAYERS: usize = 6700;

/// Three nodes with a constant of its own.
#[op("test::layer")]
fn layer(x: &Tensor, weight: &Tensor) -> Result<Tensor> {
    let (n, mut sum, mut difference) = (x.numel(), x.empty_like()?, x.empty_like()?);
    crate::kernels::sum_and_difference(x, weight, &mut sum, &mut difference, &n).grid(1).launch()?;
    Ok(sum)
}

pub(crate) fn twenty_thousand_operations_take_less_than_a_second() {
    let n = Dim::new("n", 1..=8);
    let weights = numbers(&Device::cpu(), LAYERS);
    let start = Instant::now();
    let body = |x: &Tensor| {
        let mut y = silu(x)?;
        for number in 0..LAYERS {
            y = layer(&y, &weights.slice(Dim::from(number)..Dim::from(number + 1))?)?;
        }
        Ok(y)
    };
    let graph = export(|[x]| body(x), [input("x", [&n], Dtype::F32)]).unwrap();
    let recorded = start.elapsed();
    assert_eq!((graph.nodes().len(), graph.constants().len(), graph.calls().len()), (2 + 3 * LAYERS, LAYERS, LAYERS));
    let start = Instant::now();
    assert_eq!(graph.to_string().lines().count(), 3 * LAYERS + LAYERS + 2 * LAYERS + 4);
    let written = start.elapsed();
    let start = Instant::now();
    assert_eq!(graph.text(Level::Ops).lines().count(), 2 * LAYERS + 4);
    assert!(graph.dot(Level::Kernels).lines().count() > 3 * LAYERS);
    let drawn = start.elapsed();
    let start = Instant::now();
    let flops = graph.flops().unwrap();
    let counted = start.elapsed();
    assert_eq!(flops.rows()[1].flops, Dim::from(LAYERS * 2 * 64));
    for (what, time) in [("recording", recorded), ("text", written), ("text of ops and drawing", drawn), ("flops", counted)] {
        println!("{what}: {time:?}");
        assert!(time < Duration::from_secs(1), "{what} of {} operations takes {time:?}", graph.nodes().len());
    }
}
