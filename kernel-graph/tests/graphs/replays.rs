//! CUDA graphs of sessions: when a run makes one, changes one, or launches one as it is. Other devices have none.

use galatea::graph::{ReplayCounts, Session, export, input};
use galatea::ops::{self, Tensor};
use galatea::prelude::*;
use galatea::{Dim, Dtype};

use crate::kernels::{scale, scale_elements, silu};
use crate::numbers;

fn bits(tensor: &Tensor) -> Vec<u32> {
    tensor.to_vec::<f32>().unwrap().into_iter().map(f32::to_bits).collect()
}

fn twice(x: &Tensor) -> Result<Tensor> {
    silu(&silu(x)?)
}

fn session(device: &Device, body: fn(&Tensor) -> Result<Tensor>) -> Session {
    let n = Dim::new("n", 1..=300);
    Session::new(export(|[x]| body(x), [input("x", [&n], Dtype::F32)]).unwrap(), device).unwrap()
}

/// `len` numbers with other elements for each `seed`.
fn inputs(device: &Device, len: usize, count: usize) -> Vec<Tensor> {
    let of = |seed: usize| {
        let mut x = numbers(device, len);
        scale(&mut x, 1.0, seed as i32).unwrap();
        x
    };
    (0..count).map(of).collect()
}

/// Runs with these inputs, and their outputs in one memory. Returns how many graphs were captured, updated, and launched unchanged meanwhile; zeros on devices without graphs.
fn counts<'t>(session: &Session, inputs: impl IntoIterator<Item = &'t Tensor>, outputs: &mut Vec<Tensor>) -> [usize; 3] {
    let of = |ReplayCounts { captured, updated, unchanged, .. }| [captured, updated, unchanged];
    let before = of(session.replay_counts());
    for x in inputs {
        session.run_into([x], outputs).unwrap();
        assert_eq!(bits(&outputs[0]), bits(&twice(x).unwrap()));
    }
    let after = of(session.replay_counts());
    std::array::from_fn(|index| after[index] - before[index])
}

/// The counts of a device with graphs, or zeros.
fn on(device: &Device, counts: [usize; 3]) -> [usize; 3] {
    if device.is_cuda() { counts } else { [0; 3] }
}

pub(crate) fn equal_runs_launch_one_graph(device: Device) {
    let (session, mut outputs) = (session(&device, twice), Vec::new());
    let x = &numbers(&device, 100);
    assert_eq!(counts(&session, [x; 5], &mut outputs), on(&device, [1, 0, 4]));
    // Other dims have a graph of their own.
    let other = &numbers(&device, 99);
    assert_eq!(counts(&session, [other, x, other, x], &mut outputs), on(&device, [1, 0, 3]));
}

pub(crate) fn addresses_that_recur_have_graphs_of_their_own(device: Device) {
    for count in [2, 3, 7] {
        let (session, mut outputs) = (session(&device, twice), Vec::new());
        let inputs = inputs(&device, 100, count);
        // One graph follows the addresses. When they come again, the others get graphs: the last address has the first one.
        assert_eq!(counts(&session, &inputs, &mut outputs), on(&device, [1, count - 1, 0]), "{count} addresses");
        assert_eq!(counts(&session, &inputs, &mut outputs), on(&device, [count - 1, 0, 1]), "{count} addresses");
        assert_eq!(counts(&session, inputs.iter().chain(inputs.iter().rev()), &mut outputs), on(&device, [0, 0, 2 * count]));
    }
}

pub(crate) fn addresses_that_never_recur_change_one_graph(device: Device) {
    let (session, mut outputs) = (session(&device, twice), Vec::new());
    let inputs = inputs(&device, 100, 60);
    assert_eq!(counts(&session, &inputs, &mut outputs), on(&device, [1, 59, 0]));
    // More addresses than graphs are remembered: they recur too late.
    assert_eq!(counts(&session, &inputs, &mut outputs), on(&device, [0, 60, 0]));
}

pub(crate) fn all_dims_keep_a_graph(device: Device) {
    // Outputs of all lengths have one address.
    let (session, mut outputs) = (session(&device, twice), vec![numbers(&device, 300)]);
    let lengths: Vec<Tensor> = (1..=15).map(|len| numbers(&device, 10 * len)).collect();
    let (first, later) = lengths.split_at(8);
    // Eight lengths, and then eight addresses of another one: as many graphs as are kept.
    let alike = inputs(&device, 300, 8);
    assert_eq!(counts(&session, first.iter().chain(&alike).chain(&alike), &mut outputs), on(&device, [16, 7, 1]));
    // Further lengths take graphs of the one that has several, although the first eight are older.
    assert_eq!(counts(&session, later, &mut outputs), on(&device, [0, 7, 0]));
    assert_eq!(counts(&session, &lengths, &mut outputs), on(&device, [0, 0, 15]));
    assert_eq!(counts(&session, [&alike[7], &alike[7]], &mut outputs), on(&device, [0, 0, 2]), "its last graph stays");
    // All graphs are taken, so addresses that recur change the one of their length.
    assert_eq!(counts(&session, alike.iter().chain(&alike).chain(&lengths), &mut outputs), on(&device, [0, 16, 15]));
}

/// Outputs that the caller keeps have other addresses in each run; those that it drops come back.
pub(crate) fn runs_with_outputs_of_their_own_are_right(device: Device) {
    let session = session(&device, twice);
    let x = numbers(&device, 100);
    let expected = bits(&twice(&x).unwrap());
    let mut kept = Vec::new();
    for run in 0..40 {
        kept.push(session.run([&x]).unwrap().remove(0));
        if run % 3 == 2 {
            kept.drain(..run % 2 + 1);
        }
    }
    assert!(kept.iter().all(|output| bits(output) == expected));
    let counts = session.replay_counts();
    assert_eq!(counts.captured + counts.updated + counts.unchanged, if device.is_cuda() { 40 } else { 0 });
}

/// The error of a launch is that of the run, also in a capture.
pub(crate) fn an_error_in_a_capture_changes_no_graph(device: Device) {
    fn body(x: &Tensor) -> Result<Tensor> {
        let mut y = silu(x)?;
        let n = x.numel();
        scale_elements(&mut y, 2.0, &n * (1 << 24), &n).grid(n.cdiv(64)).launch()?;
        silu(&y)
    }
    let session = session(&device, body);
    let mut outputs = Vec::new();
    let mut run = |len: usize| {
        let x = numbers(&device, len);
        session.run_into([&x], &mut outputs)?;
        assert_eq!(bits(&outputs[0]), bits(&body(&x).unwrap()), "{len} on {device}");
        Ok::<_, galatea::graph::RunError>(())
    };
    // As many dims as graphs, so that the next one changes a graph.
    (1..=16).for_each(|len| run(len).unwrap());
    let error = run(128).unwrap_err().to_string();
    assert!(error.contains("kernel `scale_elements`: "), "{error}");
    (1..=16).for_each(|len| run(len).unwrap());
    assert_eq!(session.is_replayed(), device.is_cuda());
}

/// The first run finds out that no graph can copy, and then copies.
pub(crate) fn a_capture_that_fails_counts_no_copy(device: Device) {
    let session = session(&device, |x| {
        let mut y = silu(x)?;
        let before = y.clone();
        scale(&mut y, 2.0, 1)?;
        crate::kernels::sum_difference(&y, &before).map(|(sum, _)| sum)
    });
    let x = numbers(&device, 9);
    for _ in 0..3 {
        let before = ops::copies();
        session.run([&x]).unwrap();
        assert_eq!(ops::copies() - before, 1, "{device}");
    }
    assert!(!session.is_replayed());
}
