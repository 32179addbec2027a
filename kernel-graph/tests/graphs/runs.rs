//! A graph computes what its function computes.

use galatea::ops::{self, Tensor};
use galatea::prelude::*;
use galatea::{Dim, Dtype};
use kernel_graph::{Session, input};

use crate::kernels::{row_sums, scale, silu, sum_and_difference, sum_difference};
use crate::numbers;
use crate::round_trip::export;

fn bits(tensor: &Tensor) -> Vec<u32> {
    tensor.to_vec::<f32>().unwrap().into_iter().map(f32::to_bits).collect()
}

pub(crate) fn a_graph_runs_for_all_values_of_its_dims(device: Device) {
    let n = Dim::new("n", 0..=200);
    let graph = export(|[x]| silu(&silu(x)?), [input("x", [&n], Dtype::F32)]).unwrap();
    let session = Session::new(graph, &device).unwrap();
    for len in [0, 1, 2, 63, 64, 65, 128, 200] {
        let x = numbers(&device, len);
        let outputs = session.run([&x]).unwrap();
        assert_eq!(bits(&outputs[0]), bits(&silu(&silu(&x).unwrap()).unwrap()), "{len} on {device:?}");
        assert_eq!(bits(&x), bits(&numbers(&device, len)), "an input keeps its elements");
    }
}

pub(crate) fn views_bring_the_extents_of_the_run(device: Device) {
    let [rows, columns] = [Dim::new("rows", 1..=9), Dim::new("columns", 0..=100)];
    let graph = export(|[x]| row_sums(x), [input("x", [&rows, &columns], Dtype::F32)]).unwrap();
    let session = Session::new(graph, &device).unwrap();
    for (m, n) in [(1, 1), (3, 32), (9, 100), (2, 0), (5, 33)] {
        let x = numbers(&device, m * n).reshape([m, n]).unwrap();
        let sums = session.run([&x]).unwrap();
        assert_eq!(sums[0].dims(), [Dim::from(m)]);
        assert_eq!(bits(&sums[0]), bits(&row_sums(&x).unwrap()), "{m}x{n} on {device:?}");
    }
}

/// Keeps the tensor from before a change, takes parts, and changes a part.
fn changes(x: &Tensor) -> Result<[Tensor; 4]> {
    let mut y = silu(x)?;
    let before = y.clone();
    scale(&mut y, 2.0, 1)?;
    let half = y.dim(0) / 2;
    let mut part = y.slice(Dim::from(0)..half)?;
    scale(&mut part, 0.5, -3)?;
    let rows = y.reshape([y.dim(0) / 2, 2.into()])?;
    Ok([before, y, part, row_sums(&rows)?])
}

pub(crate) fn a_tensor_is_a_value(device: Device) {
    let half = Dim::new("half", 1..=60);
    let graph = export(|[x]| changes(x), [input("x", [2 * &half, 1.into()], Dtype::F32)]);
    // The extent `2*half` alone does not determine `half`.
    assert!(graph.is_err());
    let graph = export(|[x, _]| changes(x), [input("x", [2 * &half], Dtype::F32), input("h", [&half], Dtype::F32)]).unwrap();
    let session = Session::new(graph, &device).unwrap();
    for len in [1, 31, 60] {
        let (x, h) = (numbers(&device, 2 * len), numbers(&device, len));
        let expected = changes(&x).unwrap();
        let outputs = session.run([&x, &h]).unwrap();
        for (output, expected) in outputs.iter().zip(&expected) {
            assert_eq!(bits(output), bits(expected), "{len} on {device:?}");
        }
        assert_ne!(bits(&outputs[0]), bits(&outputs[1]), "the old value is kept");
    }
}

pub(crate) fn a_launch_writes_in_place_where_no_later_use_needs_the_elements(device: Device) {
    fn in_place(x: &Tensor) -> Result<Tensor> {
        let mut y = silu(x)?;
        scale(&mut y, 2.0, 1)?;
        scale(&mut y, 3.0, 1)?;
        Ok(y)
    }
    fn kept(x: &Tensor) -> Result<[Tensor; 2]> {
        let mut y = silu(x)?;
        let before = y.clone();
        scale(&mut y, 2.0, 1)?;
        Ok([before, y])
    }
    let n = Dim::new("n", 1..=64);
    let x = numbers(&device, 64);
    let session = Session::new(export(|[x]| in_place(x), [input("x", [&n], Dtype::F32)]).unwrap(), &device).unwrap();
    let y = ops::deny_copies(|| session.run([&x])).unwrap();
    assert_eq!(bits(&y[0]), bits(&in_place(&x).unwrap()));
    let session = Session::new(export(|[x]| kept(x), [input("x", [&n], Dtype::F32)]).unwrap(), &device).unwrap();
    let denied = ops::deny_copies(|| session.run([&x])).unwrap_err().to_string();
    assert!(denied.starts_with("writing a tensor that is shared copies 256 bytes, which is denied here ("), "{denied}");
    assert_eq!(bits(&session.run([&x]).unwrap()[1]), bits(&kept(&x).unwrap()[1]));
}

pub(crate) fn an_input_that_the_function_writes_keeps_its_elements(device: Device) {
    let n = Dim::new("n", 1..=64);
    let body = |x: &Tensor| {
        let mut y = x.clone();
        scale(&mut y, 2.0, 0)?;
        Ok(y)
    };
    let session = Session::new(export(|[x]| body(x), [input("x", [&n], Dtype::F32)]).unwrap(), &device).unwrap();
    let x = numbers(&device, 7);
    let y = session.run([&x]).unwrap();
    assert_eq!((bits(&x), bits(&y[0])), (bits(&numbers(&device, 7)), bits(&body(&x).unwrap())));
}

pub(crate) fn a_launch_may_have_several_results(device: Device) {
    let n = Dim::new("n", 0..=100);
    let inputs = [input("a", [&n], Dtype::F32), input("b", [&n], Dtype::F32)];
    let graph = export(
        |[a, b]| {
            let (sum, difference) = sum_difference(a, b)?;
            sum_difference(&difference, &sum)
        },
        inputs,
    )
    .unwrap();
    let (a, b) = (numbers(&device, 70), silu(&numbers(&device, 70)).unwrap());
    let outputs = Session::new(graph, &device).unwrap().run([&a, &b]).unwrap();
    let (sum, difference) = sum_difference(&a, &b).unwrap();
    let expected = sum_difference(&difference, &sum).unwrap();
    assert_eq!((bits(&outputs[0]), bits(&outputs[1])), (bits(&expected.0), bits(&expected.1)));
}

pub(crate) fn a_tensor_that_is_read_and_written_by_one_launch_is_two_values(device: Device) {
    fn itself(x: &Tensor) -> Result<Tensor> {
        let n = x.numel();
        let mut y = x.clone();
        let mut other = x.empty_like()?;
        let old = y.clone();
        crate::kernels::sum_and_difference(&old, x, &mut y, &mut other, &n).grid(n.cdiv(64)).launch()?;
        Ok(y)
    }
    let n = Dim::new("n", 1..=100);
    let session = Session::new(export(|[x]| itself(x), [input("x", [&n], Dtype::F32)]).unwrap(), &device).unwrap();
    let x = numbers(&device, 99);
    let doubled: Vec<u32> = x.to_vec::<f32>().unwrap().iter().map(|v| (v + v).to_bits()).collect();
    assert_eq!((bits(&session.run([&x]).unwrap()[0]), bits(&itself(&x).unwrap())), (doubled.clone(), doubled));
}

pub(crate) fn threads_share_a_session(device: Device) {
    let n = Dim::new("n", 0..=100);
    let session = Session::new(export(|[x]| silu(x), [input("x", [&n], Dtype::F32)]).unwrap(), &device).unwrap();
    std::thread::scope(|scope| {
        for len in 0..8 {
            let (session, device) = (&session, &device);
            scope.spawn(move || {
                let x = numbers(device, len);
                assert_eq!(bits(&session.run([&x]).unwrap()[0]), bits(&silu(&x).unwrap()));
            });
        }
    });
}

pub(crate) fn weights_are_constants_that_the_graph_shares(device: Device) {
    let n = Dim::new("n", 1..=100);
    let weight = numbers(&device, 100);
    let body = |x: &Tensor| {
        let (sum, difference) = sum_difference(x, &weight)?;
        let (_, twice) = sum_difference(&sum, &weight.reshape([100])?)?;
        Ok([twice, difference])
    };
    let graph = export(|[x]| body(x), [input("x", [&n], Dtype::F32)]).unwrap();
    assert_eq!(graph.constants().len(), 1, "two uses of one tensor are one constant");
    assert!(graph.constants()[0].tensor.is_same(&weight));
    let session = Session::new(graph, &device).unwrap();
    for len in [1, 64, 100] {
        let x = numbers(&device, len);
        let (outputs, expected) = (session.run([&x]).unwrap(), body(&x).unwrap());
        assert_eq!((bits(&outputs[0]), bits(&outputs[1])), (bits(&expected[0]), bits(&expected[1])));
    }
    // On another device the session has a copy.
    let graph = export(|[x]| body(x), [input("x", [&n], Dtype::F32)]).unwrap();
    let x = numbers(&Device::cpu(), 9);
    let outputs = Session::new(graph, &Device::cpu()).unwrap().run([&x]).unwrap();
    assert_eq!(bits(&outputs[1]), vec![0; 9], "the first elements of `weight` are those of `x`");
}

pub(crate) fn constants_keep_the_elements_of_the_recording(device: Device) {
    let n = Dim::new("n", 1..=8);
    let mut weight = numbers(&device, 8);
    let graph = export(|[x]| Ok(sum_difference(x, &weight)?.1), [input("x", [&n], Dtype::F32)]).unwrap();
    weight.view_mut::<f32>().unwrap().fill(9.0).unwrap();
    let outputs = Session::new(graph, &device).unwrap().run([&numbers(&device, 8)]).unwrap();
    assert_eq!(bits(&outputs[0]), [0; 8], "the write has copied the tensor");
}

pub(crate) fn zeros_are_zeros_in_each_run(device: Device) {
    fn from_zeros(x: &Tensor) -> Result<Tensor> {
        let mut y = x.zeros_like()?;
        scale(&mut y, 1.0, 5)?;
        Ok(sum_difference(x, &y)?.0)
    }
    let n = Dim::new("n", 0..=100);
    let graph = export(|[x]| from_zeros(x), [input("x", [&n], Dtype::F32)]).unwrap();
    assert!(graph.to_string().contains("%0 = zeros : f32[n]"), "{graph}");
    let session = Session::new(graph, &device).unwrap();
    for len in [0, 100, 7] {
        let x = numbers(&device, len);
        assert_eq!(bits(&session.run([&x]).unwrap()[0]), bits(&from_zeros(&x).unwrap()));
    }
}

/// Three tensors in between, one of them of zeros that are written, and one that is written while an older value of it is used.
fn chain(x: &Tensor) -> Result<Tensor> {
    let mut y = silu(x)?;
    let before = y.clone();
    scale(&mut y, 2.0, 1)?;
    let mut zeros = x.zeros_like()?;
    scale(&mut zeros, 5.0, 3)?;
    let (sum, _) = sum_difference(&y, &before)?;
    Ok(sum_difference(&sum, &zeros)?.1)
}

pub(crate) fn later_runs_allocate_only_outputs(device: Device) {
    let n = Dim::new("n", 1..=300);
    let session = Session::new(export(|[x]| chain(x), [input("x", [&n], Dtype::F32)]).unwrap(), &device).unwrap();
    let mut counts = Vec::new();
    for len in [7, 300, 1, 64, 299] {
        let x = numbers(&device, len);
        let before = session.allocations();
        let outputs = session.run([&x]).unwrap();
        counts.push(session.allocations() - before);
        assert_eq!(bits(&outputs[0]), bits(&chain(&x).unwrap()), "{len} on {device:?}");
        assert_eq!(outputs[0].dims(), [Dim::from(len)]);
    }
    // The first run also allocates for what is computed in between, as much as any run needs.
    assert!(counts[0] > 1 && counts[1..] == [1; 4], "{counts:?}");
}

pub(crate) fn outputs_belong_to_the_caller(device: Device) {
    let n = Dim::new("n", 1..=300);
    let session = Session::new(export(|[x]| chain(x), [input("x", [&n], Dtype::F32)]).unwrap(), &device).unwrap();
    let x = numbers(&device, 100);
    let mut first = session.run([&x]).unwrap().remove(0);
    let expected = bits(&first);
    assert!(first.is_unique());
    let second = session.run([&x]).unwrap().remove(0);
    ops::deny_copies(|| scale(&mut first, 0.0, 9)).unwrap();
    session.run([&numbers(&device, 99)]).unwrap();
    assert_eq!(bits(&second), expected, "neither a write of another output nor a later run changes it");
    assert!(bits(&first).iter().all(|bits| *bits == 9f32.to_bits()));
}

pub(crate) fn launches_of_a_run_are_one_launch_of_a_graph(device: Device) {
    let n = Dim::new("n", 1..=300);
    let of = |body: fn(&Tensor) -> Result<Tensor>| {
        Session::new(export(|[x]| body(x), [input("x", [&n], Dtype::F32)]).unwrap(), &device).unwrap()
    };
    let alone = of(silu);
    let (twice, copies) = (of(|x| silu(&silu(x)?)), of(chain));
    for len in [7, 300, 7, 7, 65] {
        let x = numbers(&device, len);
        assert_eq!(bits(&twice.run([&x]).unwrap()[0]), bits(&silu(&silu(&x).unwrap()).unwrap()));
        assert_eq!(bits(&copies.run([&x]).unwrap()[0]), bits(&chain(&x).unwrap()));
        assert_eq!(bits(&alone.run([&x]).unwrap()[0]), bits(&silu(&x).unwrap()));
    }
    // A copy allocates, which a graph cannot. One launch gains nothing from a graph.
    assert_eq!([&twice, &copies, &alone].map(Session::is_replayed), [device.is_cuda(), false, false]);
}

pub(crate) fn a_profile_sees_each_launch_of_a_run(device: Device) {
    let n = Dim::new("n", 1..=300);
    let session = Session::new(export(|[x]| silu(&silu(x)?), [input("x", [&n], Dtype::F32)]).unwrap(), &device).unwrap();
    let x = numbers(&device, 9);
    session.run([&x]).unwrap();
    let profile = galatea::profile::Profile::start();
    session.run([&x]).unwrap();
    let trace = profile.finish();
    // Other tests launch at the same time.
    let own = trace.launches().iter().filter(|launch| launch.kernel == "silu_elements").count();
    assert!(own >= 2, "{own}");
}

pub(crate) fn parts_are_written_in_place(device: Device) {
    fn body(x: &Tensor) -> Result<Tensor> {
        let mut rows = silu(x)?.reshape([x.numel(), 1.into()])?;
        scale(&mut rows, 2.0, 1)?;
        let mut y = silu(&rows)?.reshape([x.numel()])?;
        scale(&mut y, 3.0, 0)?;
        y.reshape([1.into(), x.numel()])
    }
    let n = Dim::new("n", 1..=300);
    let session = Session::new(export(|[x]| body(x), [input("x", [&n], Dtype::F32)]).unwrap(), &device).unwrap();
    let mut counts = Vec::new();
    for len in [7, 300, 64] {
        let x = numbers(&device, len);
        let before = session.allocations();
        let mut output = ops::deny_copies(|| session.run([&x])).unwrap().remove(0);
        counts.push(session.allocations() - before);
        assert_eq!(bits(&output), bits(&body(&x).unwrap()), "{len} on {device:?}");
        // The session keeps no handle of an output, also if the output is a part.
        ops::deny_copies(|| scale(&mut output, 0.0, 1)).unwrap();
    }
    assert_eq!((counts, session.is_replayed()), (vec![2, 1, 1], device.is_cuda()));
}

pub(crate) fn one_value_may_be_written_as_two(device: Device) {
    fn body(x: &Tensor) -> Result<(Tensor, Tensor)> {
        let mut sum = silu(x)?;
        let mut difference = sum.clone();
        let n = x.numel();
        sum_and_difference(x, x, &mut sum, &mut difference, &n).grid(n.cdiv(64)).launch()?;
        Ok((sum, difference))
    }
    let n = Dim::new("n", 1..=300);
    let session = Session::new(export(|[x]| body(x), [input("x", [&n], Dtype::F32)]).unwrap(), &device).unwrap();
    let x = numbers(&device, 70);
    let (outputs, expected) = (session.run([&x]).unwrap(), body(&x).unwrap());
    assert_eq!((bits(&outputs[0]), bits(&outputs[1])), (bits(&expected.0), bits(&expected.1)));
}
