//! Replays: what is captured and replayed, what is refused, and what a launch must be given. On the CPU, and with the simulator there.

#[allow(dead_code, reason = "of the kernels there it runs one")]
mod axpy;
mod trusted;

use std::panic::{AssertUnwindSafe, catch_unwind};

use axpy::axpy;
use kernel_runtime::prelude::*;
use kernel_runtime::{Lent, Tensors, Update};

const N: usize = 100;

fn devices() -> Vec<Device> {
    let devices = vec![Device::cpu()];
    #[cfg(feature = "sim")]
    let devices = [devices, vec![Device::sim(Target::SM_80).unwrap(), Device::sim(Target::SM_90A).unwrap()]].concat();
    devices
}

/// y = y + a * x, as often as the grid says in steps of 32.
fn add(a: f32, x: &Tensor<f32>, y: &mut Tensor<f32>) -> Result<()> {
    axpy::<f32, 32>(a, x, y, N).grid(cdiv(N, 32)).launch()
}

fn full(device: Device, value: f32) -> Tensor<f32> {
    device.full(N, value).unwrap()
}

#[track_caller]
fn check(tensor: &Tensor<f32>, value: f32) {
    assert_eq!(tensor.to_vec().unwrap(), [value; N], "on {}", tensor.device());
}

#[test]
fn a_capture_runs_nothing_and_each_launch_runs_all_in_order() {
    for device in devices() {
        let (x, mut y, mut z) = (full(device, 1.0), full(device, 0.0), full(device, 0.0));
        let mut replay = Replay::capture(device.stream(), || {
            add(2.0, &x, &mut y)?;
            z.fill(5.0)?;
            add(1.0, &y, &mut z)
        })
        .unwrap();
        assert_eq!((replay.len(), replay.is_empty(), replay.device()), (3, false, device));
        check(&y, 0.0);
        for iteration in 1..4u8 {
            replay.launch((&x, &mut y, &mut z)).unwrap();
            check(&y, 2.0 * f32::from(iteration));
            check(&z, 5.0 + 2.0 * f32::from(iteration));
        }
        // Between launches the tensors are the user's, and a launch sees what was made of them.
        y.fill(0.5).unwrap();
        replay.launch_on(&device.new_stream().unwrap(), (&mut z, &x, &mut y)).unwrap();
        check(&z, 7.5);
    }
}

#[test]
fn an_empty_replay_does_nothing() {
    let mut replay = Replay::capture(Device::cpu().stream(), || Ok(())).unwrap();
    assert!(replay.is_empty());
    replay.launch(()).unwrap();
}

#[test]
fn a_launch_is_given_all_that_the_work_uses() {
    for device in devices() {
        let (x, mut y) = (full(device, 1.0), full(device, 0.0));
        let mut replay = Replay::capture(device.stream(), || add(2.0, &x, &mut y)).unwrap();
        let missing = |result: Result<()>| match result {
            Err(Error::NotLent { kernel: Some("axpy"), argument, only_shared }) => (argument, only_shared),
            other => panic!("{other:?}"),
        };
        assert_eq!(missing(replay.launch(())), ("x", false));
        assert_eq!(missing(replay.launch(&x)), ("y", false));
        assert_eq!(missing(replay.launch((&x, &y))), ("y", true));
        assert_eq!(missing(replay.launch((&mut y, x.slice(1..).unwrap()))), ("x", false));
        // Another tensor, on another device, of another type: none of them is the memory that was captured.
        let other = full(device, 1.0);
        let elsewhere = full(if device.is_cpu() { *devices().last().unwrap() } else { Device::cpu() }, 1.0);
        assert_eq!(missing(replay.launch((&other, &mut y))), ("x", false));
        if elsewhere.device() != device {
            assert_eq!(missing(replay.launch((&elsewhere, &mut y))), ("x", false));
        }
        check(&y, 0.0);
        replay.launch((&mut y, &x)).unwrap();
        check(&y, 2.0);
        // Moved, it is the same memory; dropped, it is not.
        let moved = Box::new(x);
        replay.launch((&*moved, &mut y)).unwrap();
        check(&y, 4.0);
        drop(moved);
        assert_eq!(missing(replay.launch(&mut y)), ("x", false));
    }
}

#[test]
fn a_part_is_covered_by_its_tensor_and_by_a_larger_part() {
    for device in devices() {
        let (x, mut y) = (full(device, 1.0), device.zeros::<f32>(3 * N).unwrap());
        let mut part = y.slice_mut(N..2 * N).unwrap();
        let mut replay = Replay::capture(device.stream(), || axpy::<f32, 32>(1.0, &x, &mut part, N).grid(cdiv(N, 32)).launch()).unwrap();
        replay.launch((&x, &mut y)).unwrap();
        replay.launch((&x, &mut y.slice_mut(N - 1..2 * N).unwrap())).unwrap();
        assert!(matches!(replay.launch((&x, &mut y.slice_mut(N + 1..).unwrap())), Err(Error::NotLent { .. })));
        let expected: Vec<f32> = (0..3 * N).map(|i| if (N..2 * N).contains(&i) { 2.0 } else { 0.0 }).collect();
        assert_eq!(y.to_vec().unwrap(), expected);
    }
}

/// Tensors of a type of one's own, some of them in a vector.
struct Model {
    weights: Vec<Tensor<f32>>,
    output: Tensor<f32>,
}

impl<'t> Tensors<'t> for &'t mut Model {
    fn lend(self, lent: &mut Lent<'t>) {
        (&*self.weights, &mut self.output).lend(lent);
    }
}

#[test]
fn user_types_lend_their_tensors() {
    for device in devices() {
        let mut model = Model { weights: (1..4u8).map(|i| full(device, f32::from(i))).collect(), output: full(device, 0.0) };
        let mut replay = Replay::capture(device.stream(), || {
            model.output.fill(0.0)?;
            model.weights.iter().try_for_each(|weight| add(1.0, weight, &mut model.output))
        })
        .unwrap();
        replay.launch(&mut model).unwrap();
        check(&model.output, 6.0);
        replay.launch((model.weights.iter().collect::<Vec<_>>(), Some(&mut model.output))).unwrap();
        check(&model.output, 6.0);
        let [first, second, third] = &model.weights[..] else { unreachable!("there are three") };
        replay.launch(([first, second, third], &mut model.output)).unwrap();
    }
}

#[test]
fn copies_and_fills_of_every_width_are_captured() {
    fn test<T: Element>(device: Device, value: T) {
        let mut source = device.zeros::<T>(N).unwrap();
        let mut target = device.zeros::<T>(N + 7).unwrap();
        let mut replay = Replay::capture(device.stream(), || {
            source.slice_mut(3..N - 1)?.fill(value)?;
            // An empty part is no work.
            source.slice_mut(3..3)?.fill(value)?;
            target.slice_mut(5..5 + N)?.copy_from(&source.view())
        })
        .unwrap();
        assert_eq!(replay.len(), 2);
        replay.launch((&mut source, &mut target)).unwrap();
        let want = |i: usize| if (8..N + 4).contains(&i) { value } else { T::default() };
        assert_eq!(target.to_vec().unwrap(), (0..N + 7).map(want).collect::<Vec<_>>(), "{} on {device}", T::DTYPE);
        match replay.launch(&mut target) {
            Err(Error::NotLent { kernel: None, argument: "the target of a fill", .. }) => {}
            other => panic!("{other:?}"),
        }
    }
    for device in devices() {
        test(device, true);
        test(device, -3i8);
        test(device, bf16::from_f32(-1.5));
        test(device, 1.25f32);
        test(device, u64::MAX);
        test(device, 0x0123_4567_89ab_cdefi64);
        test(device, -0.1f64);
    }
}

#[test]
fn work_that_a_replay_cannot_repeat_is_refused() {
    for device in devices() {
        let stream = device.stream();
        let (x, mut y) = (full(device, 1.0), full(device, 0.0));
        let event = stream.record().unwrap();
        let mut other = Replay::capture(stream, || Ok(())).unwrap();
        let mut doing = Vec::new();
        let mut replay = Replay::capture(stream, || {
            let mut refused = |result: Result<()>| match result {
                Err(Error::InCapture { doing: what, help }) => {
                    assert!(!help.is_empty());
                    doing.push(what);
                }
                other => panic!("on {device}: {other:?}"),
            };
            refused(device.zeros::<f32>(3).map(drop));
            refused(device.tensor(&[1.0f32]).map(drop));
            refused(x.try_clone().map(drop));
            refused(y.copy_from_slice(&[0.0; N]));
            refused(x.to_vec().map(drop));
            refused(stream.synchronize());
            refused(device.synchronize());
            refused(stream.record().map(drop));
            refused(stream.wait(&event));
            refused(event.synchronize());
            refused(stream.wait_for(stream));
            refused(y.set_stream(stream));
            refused(axpy::<f32, 32>(1.0, &x, &mut y, N).grid(4).checked().launch());
            refused(Replay::capture(stream, || Ok(())).map(drop));
            refused(other.launch(()));
            refused(kernel_runtime::bench::do_bench(&device, || Ok(())).map(drop));
            // The refused calls do not invalidate the capture.
            add(1.0, &x, &mut y)
        })
        .unwrap();
        assert_eq!(doing.len(), 16);
        replay.launch((&x, &mut y)).unwrap();
        check(&y, 1.0);
    }
}

#[test]
fn a_capture_ends_with_its_closure() {
    for device in devices() {
        let (x, mut y) = (full(device, 1.0), full(device, 0.0));
        let error = Replay::capture(device.stream(), || {
            add(1.0, &x, &mut y)?;
            Err(Error::EventNotRecorded)
        });
        assert!(matches!(error, Err(Error::EventNotRecorded)));
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            Replay::capture(device.stream(), || {
                add(1.0, &x, &mut y)?;
                panic!("in a capture")
            })
        }));
        assert!(panicked.is_err());
        add(1.0, &x, &mut y).unwrap();
        check(&y, 1.0);
        let replay = Replay::capture(device.stream(), || add(1.0, &x, &mut y)).unwrap();
        assert_eq!(replay.len(), 1, "what an earlier capture wrote down is gone");
    }
}

#[test]
fn other_threads_launch_while_one_captures() {
    for device in devices() {
        let (x, mut y, mut z) = (full(device, 1.0), full(device, 0.0), full(device, 0.0));
        let mut replay = Replay::capture(device.stream(), || {
            std::thread::scope(|scope| scope.spawn(|| add(3.0, &x, &mut z)).join().expect("it does not panic"))?;
            add(1.0, &x, &mut y)
        })
        .unwrap();
        assert_eq!(replay.len(), 1);
        check(&z, 3.0);
        // A replay is sent to the thread that launches it.
        std::thread::scope(|scope| scope.spawn(|| replay.launch((&x, &mut y))).join().expect("it does not panic")).unwrap();
        check(&y, 1.0);
    }
}

#[test]
fn an_update_says_whether_the_shape_stayed() {
    for device in devices() {
        let (x, mut y, mut z) = (full(device, 1.0), full(device, 0.0), full(device, 0.0));
        let mut replay = Replay::capture(device.stream(), || add(1.0, &x, &mut y).and_then(|()| add(1.0, &x, &mut z))).unwrap();
        // The same again; another scalar; other tensors; another grid.
        let same = replay.update(|| add(1.0, &x, &mut y).and_then(|()| add(1.0, &x, &mut z))).unwrap();
        assert_eq!(same, Update::InPlace { changed: 0 });
        let scalar = replay.update(|| add(1.0, &x, &mut y).and_then(|()| add(10.0, &x, &mut z))).unwrap();
        assert_eq!(scalar, Update::InPlace { changed: 1 });
        replay.launch((&x, &mut y, &mut z)).unwrap();
        check(&y, 1.0);
        check(&z, 10.0);
        let tensors = replay.update(|| add(1.0, &x, &mut z).and_then(|()| add(10.0, &x, &mut y))).unwrap();
        assert_eq!(tensors, Update::InPlace { changed: 2 });
        replay.launch((&x, &mut y, &mut z)).unwrap();
        check(&y, 11.0);
        check(&z, 11.0);
        let grid = replay.update(|| axpy::<f32, 32>(1.0, &x, &mut z, N).grid(1).launch().and_then(|()| add(10.0, &x, &mut y))).unwrap();
        assert_eq!(grid, Update::InPlace { changed: 1 });
        replay.launch((&x, &mut y, &mut z)).unwrap();
        assert_eq!((z.to_vec().unwrap()[..33].to_vec(), z.to_vec().unwrap()[33]), ([vec![12.0; 32], vec![11.0]].concat(), 11.0));
        // A tensor that the update no longer uses need not be lent, and a tensor that it newly uses must be.
        let fewer = replay.update(|| add(1.0, &x, &mut y)).unwrap();
        assert_eq!((fewer, replay.len()), (Update::Rebuilt, 1));
        replay.launch((&x, &mut y)).unwrap();
        check(&y, 22.0);
        let other = replay.update(|| axpy::<f32, 64>(1.0, &x, &mut z, N).grid(2).launch()).unwrap();
        assert_eq!(other, Update::Rebuilt);
        assert!(matches!(replay.launch((&x, &mut y)), Err(Error::NotLent { argument: "y", .. })));
        // An update that fails leaves the replay as it was.
        assert!(replay.update(|| Err(Error::EventNotRecorded)).is_err());
        z.fill(0.0).unwrap();
        replay.launch((&x, &mut z)).unwrap();
        check(&z, 1.0);
    }
}

/// Simulated GPUs number their memory alike, and a replay that was launched with a tensor of one has not been lent the other's.
#[cfg(feature = "sim")]
#[test]
fn tensors_of_another_device_are_not_taken_for_those_of_the_last_launch() {
    let [near, far] = [Target::SM_80, Target::SM_90A].map(|target| Device::sim(target).unwrap());
    // Until both have the same address free.
    let (mut held, mut pair) = (Vec::new(), (full(near, 0.0), full(far, 0.0)));
    while pair.0.view().address() != pair.1.view().address() {
        let behind = if pair.0.view().address() < pair.1.view().address() { near } else { far };
        let newer = full(behind, 0.0);
        held.push(std::mem::replace(if behind == near { &mut pair.0 } else { &mut pair.1 }, newer));
    }
    let (mut own, mut other) = pair;
    let mut replay = Replay::capture(near.stream(), || own.fill(1.0)).unwrap();
    replay.launch(&mut own).unwrap();
    own.fill(0.0).unwrap();
    assert!(matches!(replay.launch(&mut other), Err(Error::NotLent { .. })));
    check(&own, 0.0);
    check(&other, 0.0);
}

#[test]
#[cfg_attr(not(feature = "sim"), ignore = "a second device is there with the feature `sim`")]
fn work_stays_on_the_device_of_its_stream() {
    let other = &devices()[1];
    let (x, mut y) = (full(*other, 1.0), full(*other, 0.0));
    let near = full(Device::cpu(), 1.0);
    let stream = Device::cpu().stream();
    assert!(matches!(Replay::capture(stream, || add(1.0, &x, &mut y)), Err(Error::WrongDevice { .. })));
    assert!(matches!(Replay::capture(stream, || y.fill(1.0)), Err(Error::WrongDevice { .. })));
    assert!(matches!(Replay::capture(stream, || y.view_mut().copy_from(&near.view())), Err(Error::WrongDevice { .. })));
    let mut replay = Replay::capture(stream, || Ok(())).unwrap();
    assert!(matches!(replay.launch_on(other.stream(), ()), Err(Error::WrongDevice { .. })));
}

#[test]
fn a_replay_can_be_sent_and_shared() {
    fn check<T: Send + Sync>() {}
    check::<Replay>();
}
