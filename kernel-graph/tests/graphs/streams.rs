//! Runs on streams of the caller. The streams of the CPU and of simulated GPUs are always idle.

use galatea::graph::{RunError, Session, export, input};
use galatea::ops::{self, Tensor};
use galatea::prelude::*;
use galatea::profile::Profile;
use galatea::{Dim, Dtype};

use crate::kernels::{scale, silu, sum_difference};
use crate::numbers;

fn bits(tensor: &Tensor) -> Vec<u32> {
    tensor.to_vec::<f32>().unwrap().into_iter().map(f32::to_bits).collect()
}

/// Several tensors in between.
fn body(x: &Tensor) -> Result<Tensor> {
    let mut y = silu(&silu(x)?)?;
    scale(&mut y, 0.5, 1)?;
    Ok(sum_difference(&y, x)?.0)
}

fn session(device: &Device, body: fn(&Tensor) -> Result<Tensor>) -> Session {
    let n = Dim::new("n", 1..=300);
    Session::new(export(|[x]| body(x), [input("x", [&n], Dtype::F32)]).unwrap(), device).unwrap()
}

/// Each run reads the output of the run before, which is on another stream, while other runs are queued.
pub(crate) fn runs_on_streams_wait_for_each_other(device: Device) {
    let session = session(&device, body);
    let streams = [device.stream().clone(), device.new_stream().unwrap(), device.new_stream().unwrap()];
    let x = numbers(&device, 200);
    let (mut chain, mut expected) = (x.clone(), x.clone());
    let (mut others, mut again) = (Vec::new(), Vec::new());
    for step in 0..9 {
        let [of_chain, of_other] = [&streams[step % 3], &streams[(step + 1) % 3]];
        others.push(session.on(of_other).run([&x]).unwrap().remove(0));
        chain = session.on(of_chain).run([&chain]).unwrap().remove(0);
        // The outputs of a run on one stream are written by the next one on another stream.
        session.on(of_other).run_into([&chain], &mut again).unwrap();
        assert_eq!((chain.stream(), again[0].stream()), (Some(of_chain), Some(of_other)), "the home streams of outputs");
        expected = body(&expected).unwrap();
    }
    assert_eq!(bits(&chain), bits(&expected), "{device}");
    assert_eq!(bits(&again[0]), bits(&body(&expected).unwrap()));
    let once = bits(&body(&x).unwrap());
    assert!(others.iter().all(|output| bits(output) == once));
    // The inputs were only read.
    assert_eq!(bits(&x), bits(&numbers(&device, 200)));
    assert_eq!(session.is_replayed(), device.is_cuda());
}

pub(crate) fn streams_share_no_memory(device: Device) {
    let session = session(&device, body);
    let streams = [device.new_stream().unwrap(), device.new_stream().unwrap()];
    let x = numbers(&device, 100);
    let allocations = |stream: &Stream| {
        let before = session.allocations();
        session.on(stream).run([&x]).unwrap();
        session.allocations() - before
    };
    let [first, second] = [0, 1].map(|number| allocations(&streams[number]));
    assert!(first > 1);
    assert_eq!(second, if device.is_cuda() { first } else { 1 }, "{device}");
    // The memory of both is kept, and that of as many other streams as are kept takes its place.
    assert_eq!([0, 1, 0].map(|number| allocations(&streams[number])), [1; 3]);
    for _ in 0..7 {
        allocations(&device.new_stream().unwrap());
    }
    assert_eq!(allocations(&streams[0]), 1, "it was used after the other one");
    assert_eq!(allocations(&streams[1]), if device.is_cuda() { first } else { 1 }, "{device}");
}

/// An input that a run writes in place has another home stream.
pub(crate) fn launches_run_on_the_stream(device: Device) {
    let session = session(&device, |x| {
        let mut y = x.clone();
        scale(&mut y, 2.0, 0)?;
        scale(&mut y, 2.0, 1)?;
        Ok(y)
    });
    let stream = device.new_stream().unwrap();
    let profile = Profile::start();
    let on_stream = ops::deny_copies(|| session.on(&stream).run_owned([numbers(&device, 9)])).unwrap();
    let on_default = ops::deny_copies(|| session.run_owned([numbers(&device, 9)])).unwrap();
    assert_eq!(bits(&on_stream[0]), bits(&on_default[0]));
    let trace = profile.finish();
    let tracks: Vec<_> = trace.launches().iter().filter(|launch| launch.kernel == "scale_elements").map(|launch| launch.track).collect();
    assert!(tracks[0] == tracks[1] && tracks[2] == tracks[3], "{tracks:?}");
    assert_eq!(tracks[0] != tracks[2], device.is_cuda(), "{tracks:?}");
}

pub(crate) fn a_stream_of_another_device_is_an_error() {
    let session = session(&Device::cpu(), body);
    let gpu = Device::parse("sim:sm_80").unwrap();
    let x = numbers(&Device::cpu(), 9);
    let mut outputs = session.run([&x]).unwrap();
    let on = session.on(gpu.stream());
    for error in [on.run([&x]).unwrap_err(), on.run_into([&x], &mut outputs).unwrap_err(), on.run_owned([x.clone()]).unwrap_err()] {
        assert!(matches!(&error, RunError::Runtime(error) if matches!(**error, Error::WrongDevice { .. })), "{error}");
    }
    assert!(outputs.is_empty());
}
