//! Large graphs: the time is linear in the number of operations.

use std::time::Duration;

use cpu_time::ThreadTime;

use galatea::op;
use galatea::ops::Tensor;
use galatea::prelude::*;
use galatea::{Dim, Dtype};
use kernel_graph::{Environment, Graph, Level, export, input};

use crate::kernels::silu;
use crate::numbers;

/// The larger of both graphs has 20,102 operations.
const LAYERS: usize = 6700;
/// How many times smaller the other one is.
const PART: usize = 8;

/// Three nodes with a constant of its own.
#[op("test::layer")]
fn layer(x: &Tensor, weight: &Tensor) -> Result<Tensor> {
    let (n, mut sum, mut difference) = (x.numel(), x.empty_like()?, x.empty_like()?);
    crate::kernels::sum_and_difference(x, weight, &mut sum, &mut difference, &n).grid(1).launch()?;
    Ok(sum)
}

/// The times to record a graph of so many layers, to write it, to read its text, to draw it, and to count its operations.
fn times(layers: usize) -> [(&'static str, Duration); 5] {
    let n = Dim::new("n", 1..=8);
    let weights = numbers(&Device::cpu(), layers);
    let start = ThreadTime::now();
    let body = |x: &Tensor| {
        let mut y = silu(x)?;
        for number in 0..layers {
            y = layer(&y, &weights.slice(Dim::from(number)..Dim::from(number + 1))?)?;
        }
        Ok(y)
    };
    let graph = export(|[x]| body(x), [input("x", [&n], Dtype::F32)]).unwrap();
    let recorded = start.elapsed();
    assert_eq!((graph.nodes().len(), graph.constants().len(), graph.calls().len()), (2 + 3 * layers, layers, layers));
    let start = ThreadTime::now();
    assert_eq!(graph.to_string().lines().count(), 3 * layers + layers + 2 * layers + 4);
    let written = start.elapsed();
    let text = graph.to_string();
    let start = ThreadTime::now();
    assert_eq!(Graph::parse(&text, &Environment::from(&graph)).unwrap().nodes().len(), graph.nodes().len());
    let read = start.elapsed();
    let start = ThreadTime::now();
    assert_eq!(graph.text(Level::Ops).lines().count(), 2 * layers + 4);
    assert!(graph.dot(Level::Kernels).lines().count() > 3 * layers);
    let drawn = start.elapsed();
    let start = ThreadTime::now();
    let flops = graph.flops().unwrap();
    let counted = start.elapsed();
    assert_eq!(flops.rows()[1].flops, Dim::from(layers * 2 * 64));
    [("recording", recorded), ("text", written), ("reading", read), ("text of ops and drawing", drawn), ("flops", counted)]
}

/// A quadratic search takes `PART * PART` times as long for the larger graph.
pub(crate) fn the_time_is_linear_in_the_operations() {
    // The least of some times of the processor: other tests and programs run at the same time.
    let least = |layers: usize| {
        let mut least = times(layers);
        for _ in 0..2 {
            least.iter_mut().zip(times(layers)).for_each(|(least, (_, time))| least.1 = least.1.min(time));
        }
        least
    };
    for ((what, large), (_, small)) in least(LAYERS).into_iter().zip(least(LAYERS / PART)) {
        let most = small * (PART * PART / 2) as u32;
        println!("{what}: {large:?}, and {small:?} for {PART} times fewer operations");
        assert!(large < most.max(Duration::from_millis(100)), "{what} takes {large:?}, and {small:?} for {PART} times fewer operations");
    }
}
