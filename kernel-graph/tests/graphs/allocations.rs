//! Allocations of the host in runs and op calls.

use galatea::graph::{Session, export, input};
use galatea::op;
use galatea::ops::{Any, Tensor};
use galatea::prelude::*;
use galatea::{Dim, Dtype};

use crate::allocator::allocations;
use crate::kernels::{scale, silu, silu_elements, sum_difference};
use crate::numbers;

/// Memory in between, parts of a tensor, a constant, a write in place, and two outputs, one of which is a part.
fn program(x: &Tensor, weights: &Tensor) -> Result<(Tensor, Tensor)> {
    let mut y = silu(x)?;
    scale(&mut y, 2.0, 1)?;
    let half = silu(&y.slice(Dim::from(0)..y.dim(0) / 2)?)?;
    let (sum, _) = sum_difference(&silu(&y)?, weights)?;
    Ok((sum, half.slice(Dim::from(0)..half.dim(0) / 2)?))
}

/// The fewest allocations of this thread in a call of the function. Another thread may interrupt one call for so long that it uses more threads, which allocates.
fn fewest(mut call: impl FnMut()) -> usize {
    let mut counted = || {
        let before = allocations();
        call();
        allocations() - before
    };
    (0..20).map(|_| counted()).min().unwrap_or_default()
}

pub(crate) fn warm_runs_allocate_only_what_they_return(device: Device) {
    let n = Dim::new("n", 4..=64);
    let weights = numbers(&device, 64);
    let inputs = [input("x", [&n], Dtype::F32), input("w", [&n], Dtype::F32)];
    let graph = export(|[x, w]| program(x, &sum_difference(w, &weights)?.0), inputs).unwrap();
    let session = Session::new(graph, &device).unwrap();
    let (x, w, mut outputs) = (numbers(&device, 64), numbers(&device, 64), Vec::new());
    let again = fewest(|| session.run_into([&x, &w], &mut outputs).unwrap());
    let new = fewest(|| drop(session.run([&x, &w]).unwrap()));
    let check = fewest(|| session.check([&x, &w]).unwrap());
    assert_eq!(check, 0, "{device}");
    assert_eq!(session.is_replayed(), device.is_cuda());
    // A simulated GPU computes with memory of its own in each launch.
    assert!(again == 0 || device.is_sim(), "{again} on {device}");
    // Each of the two outputs has shared memory, which the CPU takes from the same allocator. The vector of the outputs is one more. On a GPU, a run whose outputs
    // have new addresses changes a graph.
    assert!(new == 1 + 2 * 2 || !device.is_cpu(), "{new} on {device}");
}

fn into(x: &Tensor, y: &mut Tensor) -> Result<()> {
    let n = x.numel();
    silu_elements::<Any, 64>(x, y, &n).grid(n.cdiv(64)).launch()
}

/// The same function as an op, with a gradient.
#[op("test::silu_into", backward(x) = |grad: &Tensor, _| Ok::<_, Error>((grad.clone(), grad.clone())))]
fn into_op(x: &Tensor, y: &mut Tensor) -> Result<()> {
    into(x, y)
}

pub(crate) fn an_op_allocates_nothing(device: Device) {
    let (x, mut y) = (numbers(&device, 64), numbers(&device, 64));
    let launch = fewest(|| into(&x, &mut y).unwrap());
    let op = fewest(|| into_op(&x, &mut y).unwrap());
    assert_eq!(op, launch, "{device}");
    assert!(launch == 0 || device.is_sim(), "{launch} on {device}");
}
