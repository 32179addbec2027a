//! Tests of sessions that run more than once: CUDA graphs, memory and parameters from an earlier run.

use galatea::graph::{Package, RunError, Session, input};
use galatea::ops::{self, Module, Tensor};
use galatea::prelude::*;
use galatea::{Dim, Dtype};

use crate::kernels::{scale, silu, sum_difference};
use crate::numbers;
use crate::round_trip::export;

fn bits(tensor: &Tensor) -> Vec<u32> {
    tensor.to_vec::<f32>().unwrap().into_iter().map(f32::to_bits).collect()
}

fn twice(x: &Tensor) -> Result<Tensor> {
    silu(&silu(x)?)
}

fn session(device: &Device) -> Session {
    let n = Dim::new("n", 1..=300);
    Session::new(export(|[x]| twice(x), [input("x", [&n], Dtype::F32)]).unwrap(), device).unwrap()
}

/// A graph that is kept for some dims must not be launched for other ones, nor for other tensors.
pub(crate) fn graphs_are_those_of_the_dims_and_tensors_of_a_run(device: Device) {
    let session = session(&device);
    // More dims than graphs are kept, each of them again and again, with tensors that stay and with others.
    let kept: Vec<Tensor> = (1..40).map(|len| numbers(&device, 7 * len)).collect();
    let expected: Vec<Vec<u32>> = kept.iter().map(|x| bits(&twice(x).unwrap())).collect();
    for order in [1, 1, 5, 11] {
        for number in (0..kept.len()).map(|at| at * order % kept.len()) {
            let mut other = kept[number].clone();
            scale(&mut other, 0.5, 0).unwrap();
            assert_eq!(bits(&session.run([&kept[number]]).unwrap()[0]), expected[number]);
            assert_eq!(bits(&session.run([&other]).unwrap()[0]), bits(&twice(&other).unwrap()));
        }
    }
    // The same addresses with other dims.
    let (whole, mut outputs) = (numbers(&device, 300), session.run([&numbers(&device, 300)]).unwrap());
    for len in (1..=40).chain([40, 3, 40]) {
        let x = whole.slice(0..len).unwrap();
        session.run_into([&x], &mut outputs).unwrap();
        assert_eq!((outputs[0].dims(), bits(&outputs[0])), (vec![Dim::from(len)], bits(&twice(&x).unwrap())));
    }
    assert_eq!(session.is_replayed(), device.is_cuda());
}

pub(crate) fn outputs_are_used_again(device: Device) {
    let session = session(&device);
    let [small, large] = [90, 200].map(|len| numbers(&device, len));
    let mut outputs = Vec::new();
    let mut run = |x: &Tensor| {
        let before = session.allocations();
        session.run_into([x], &mut outputs).unwrap();
        assert_eq!((outputs.len(), bits(&outputs[0])), (1, bits(&twice(x).unwrap())));
        (session.allocations() - before, outputs[0].clone())
    };
    assert!(run(&large).0 > 0);
    for x in [&large, &small, &large] {
        assert_eq!(run(x).0, 0);
    }
    // A tensor that somebody else has keeps its elements.
    let (_, held) = run(&small);
    let elements = bits(&held);
    assert_eq!(run(&large).0, 1);
    assert_eq!(bits(&held), elements);
    // Outputs of other sessions, dtypes and devices, and too many of them.
    for mut outputs in [
        vec![Tensor::zeros(&device, Dtype::F64, [300]).unwrap()],
        vec![Tensor::zeros(&Device::cpu(), Dtype::F32, [300]).unwrap()],
        vec![Tensor::zeros(&device, Dtype::F32, [2]).unwrap(), small.clone()],
        vec![small.clone()],
    ] {
        session.run_into([&small], &mut outputs).unwrap();
        assert_eq!((outputs.len(), bits(&outputs[0])), (1, elements.clone()));
    }
    let error = session.run_into([&numbers(&device, 301)], &mut outputs).unwrap_err();
    assert!(error.to_string().contains("n") && outputs.is_empty(), "{error}");
}

/// The two outputs are one tensor, of which a later run must not make two.
pub(crate) fn outputs_that_share_memory_are_used_again(device: Device) {
    let n = Dim::new("n", 2..=300);
    let halves = |x: &Tensor| {
        let y = silu(&silu(x)?)?;
        Ok((y.slice(0..1)?, y.slice(1..2)?))
    };
    let session = Session::new(export(|[x]| halves(x), [input("x", [&n], Dtype::F32)]).unwrap(), &device).unwrap();
    let mut outputs = Vec::new();
    for len in [200, 2, 200] {
        let x = numbers(&device, len);
        session.run_into([&x], &mut outputs).unwrap();
        let (first, second) = halves(&x).unwrap();
        assert_eq!([bits(&outputs[0]), bits(&outputs[1])], [bits(&first), bits(&second)]);
    }
    // An output that is a part is lent with its whole memory.
    assert_eq!(session.is_replayed(), device.is_cuda());
}

/// A graph cannot be launched while the caller captures one. Later runs launch graphs again.
pub(crate) fn a_run_in_a_capture_changes_nothing(device: Device) {
    let session = session(&device);
    let x = numbers(&device, 9);
    let expected = bits(&session.run([&x]).unwrap()[0]);
    let captured = galatea::Replay::capture(device.stream(), || {
        let error = session.run([&x]).unwrap_err().to_string();
        assert!(error.contains("allocate memory"), "{error}");
        Ok(())
    });
    assert!(captured.unwrap().is_empty());
    assert_eq!(bits(&session.run([&x]).unwrap()[0]), expected);
    assert_eq!(session.is_replayed(), device.is_cuda());
}

/// A parameter may have a name like that of a constant without one.
pub(crate) fn names_of_parameters_are_not_those_of_constants(device: Device) {
    #[derive(Module)]
    struct Named {
        c0: Tensor,
    }
    let (model, table) = (Named { c0: numbers(&device, 8) }, numbers(&device, 8));
    let forward = |x: &Tensor, c0: &Tensor| sum_difference(&sum_difference(x, c0)?.0, &table).map(|(sum, _)| sum);
    let graph = export(|[x]| forward(x, &model.c0), [input("x", [8], Dtype::F32)]).unwrap().with_params(&model);
    let package = Package::from_bytes(graph.package().to_bytes().unwrap()).unwrap();
    let x = numbers(&device, 8);
    for mut session in [graph.compile(&device).unwrap(), package.load(&device).unwrap()] {
        let mut c0 = numbers(&device, 8);
        scale(&mut c0, 3.0, 1).unwrap();
        let new = Named { c0 };
        session.update_params(&new).unwrap();
        assert_eq!(bits(&session.run([&x]).unwrap()[0]), bits(&forward(&x, &new.c0).unwrap()));
        // The constant without a name has one for `update_constants`.
        session.update_constants([("c1".to_owned(), new.c0.clone())]).unwrap();
        assert_ne!(bits(&session.run([&x]).unwrap()[0]), bits(&forward(&x, &new.c0).unwrap()));
    }
}

#[derive(Module)]
struct Shift {
    by: Tensor,
    other: Tensor,
}

impl Shift {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let (sum, _) = sum_difference(x, &self.by)?;
        Ok(sum_difference(&sum, &self.other)?.0)
    }
}

pub(crate) fn parameters_are_replaced_by_name(device: Device) {
    let mut model = Shift { by: numbers(&device, 8), other: numbers(&device, 8) };
    let graph = export(|[x]| model.forward(x), [input("x", [8], Dtype::F32)]).unwrap().with_params(&model);
    let package = Package::from_bytes(graph.package().to_bytes().unwrap()).unwrap();
    let x = numbers(&device, 8);
    for mut session in [graph.compile(&device).unwrap(), package.load(&device).unwrap()] {
        let run = |session: &Session| bits(&session.run([&x]).unwrap()[0]);
        let before = bits(&model.forward(&x).unwrap());
        assert_eq!([run(&session), run(&session)], [before.clone(), before.clone()]);
        let mut new = numbers(&device, 8);
        scale(&mut new, 3.0, 1).unwrap();
        // An error changes nothing, not even the parameters in front of it.
        let of = |name: &str, tensor: &Tensor| (name.to_owned(), tensor.clone());
        let error = session.update_constants([of("by", &new), of("bye", &new)]).unwrap_err();
        assert_eq!(error.to_string(), "the program has no constant `bye`\nhelp: its constants are `by`, `other`");
        let error = session.update_constants([of("by", &new), of("other", &numbers(&device, 9))]).unwrap_err();
        assert!(error.to_string().starts_with("parameter `other` is f32[9], and the constant of the program is f32[8]\n"), "{error}");
        assert!(matches!(error, RunError::ParameterType { .. }));
        assert_eq!(run(&session), before);
        session.update_constants([of("by", &new.to_device(&Device::cpu()).unwrap())]).unwrap();
        let old = std::mem::replace(&mut model.by, new);
        assert_eq!(run(&session), bits(&model.forward(&x).unwrap()));
        assert_ne!(run(&session), before);
        // The parameter belongs to the caller, whose writes the session does not see.
        let expected = run(&session);
        ops::compare(&model.by, &old).unwrap();
        scale(&mut model.by, 0.0, 9).unwrap();
        assert_eq!(run(&session), expected);
        model.by = old;
    }
}

/// Two tensors are needed at the same time, whatever the length of the chain. A tensor of another dtype, and one that is needed later, have memory of their own.
pub(crate) fn memory_is_shared_by_tensors_that_are_not_needed_together(device: Device) {
    fn chain(x: &Tensor, steps: usize) -> Result<Tensor> {
        let first = silu(x)?;
        let mut y = first.clone();
        for _ in 0..steps {
            y = silu(&y)?;
            // A write in place, and a part, keep the memory.
            scale(&mut y, 1.5, 0)?;
            y = silu(&y.slice(Dim::from(0)..y.dim(0))?)?;
        }
        sum_difference(&first, &y).map(|(sum, _)| sum)
    }
    let n = Dim::new("n", 1..=300);
    let mut counts = Vec::new();
    for steps in [1, 2, 8] {
        let session = Session::new(export(|[x]| chain(x, steps), [input("x", [&n], Dtype::F32)]).unwrap(), &device).unwrap();
        for len in [7, 300, 1] {
            let x = numbers(&device, len);
            assert_eq!(bits(&session.run([&x]).unwrap()[0]), bits(&chain(&x, steps).unwrap()), "{steps} steps of {len}");
        }
        counts.push(session.allocations());
    }
    // The first value, two in turns, the difference, and three outputs.
    assert!(counts[1] == counts[2] && counts[2] <= 7, "{counts:?}");
}

/// Tensors of different sizes in one slot: each run has room for the largest.
pub(crate) fn shared_memory_has_room_for_the_largest(device: Device) {
    fn body(x: &Tensor) -> Result<Tensor> {
        let half = silu(&silu(&x.slice(Dim::from(0)..x.dim(0) / 2)?)?)?;
        let whole = silu(&silu(x)?)?;
        let mut small = silu(&whole.slice(Dim::from(0)..half.dim(0))?)?;
        scale(&mut small, 2.0, 0)?;
        Ok(sum_difference(&half, &small)?.1)
    }
    let n = Dim::new("n", 2..=300);
    let session = Session::new(export(|[x]| body(x), [input("x", [&n], Dtype::F32)]).unwrap(), &device).unwrap();
    for len in [10, 300, 3, 299] {
        let x = numbers(&device, len);
        assert_eq!(bits(&session.run([&x]).unwrap()[0]), bits(&body(&x).unwrap()), "{len} on {device}");
    }
}
