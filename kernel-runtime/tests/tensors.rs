//! Tensors on the CPU, on simulated GPUs where they are built in, and on the GPUs where there are any: the same test on each, reported as ignored where there
//! is none.

use kernel_runtime::prelude::*;
use kernel_runtime::{Dtype, IntoShape};
use libtest_mimic::{Arguments, Trial};

/// A test's name, and what it does on a device.
type Test = (&'static str, fn(Device));

const TESTS: &[Test] = &[
    ("every_type_makes_the_round_trip", every_type_makes_the_round_trip),
    ("empty_tensors_work_everywhere", empty_tensors_work_everywhere),
    ("slices_are_rows_and_borrow", slices_are_rows_and_borrow),
    ("copies_move_between_devices", copies_move_between_devices),
    ("mistakes_are_errors_that_tell_the_sizes", mistakes_are_errors_that_tell_the_sizes),
    ("a_tensor_prints_its_shape_and_its_first_values", a_tensor_prints_its_shape_and_its_first_values),
];

/// Tests that no device matters to.
const OF_THE_CPU: &[Test] = &[
    ("shapes_are_written_in_many_ways", |_| shapes_are_written_in_many_ways()),
    ("tensors_cross_threads", |_| tensors_cross_threads()),
    ("the_cpu_has_no_cuda_slice_to_give", |_| the_cpu_has_no_cuda_slice_to_give()),
];

/// Each device by its name, or why there is none.
fn columns() -> Vec<(String, std::result::Result<Device, &'static str>)> {
    let gpus = Device::cuda_count().max(1);
    let names = ["cpu", "sim:sm_80", "sim:sm_90a"].map(str::to_owned).into_iter().chain((0..gpus).map(|gpu| format!("cuda:{gpu}")));
    let open = |name: String| {
        let device = Device::parse(&name).map_err(|error| match error {
            Error::NoSimulator => "skipped: built without the feature `sim`",
            Error::NoDriver | Error::NoDevice { .. } => "skipped: no GPU",
            error => panic!("{error}"),
        });
        (name, device)
    };
    names.map(open).collect()
}

fn devices() -> Vec<Device> {
    columns().into_iter().filter_map(|(_, device)| device.ok()).collect()
}

fn main() {
    let columns = columns();
    let trial = |(name, device): &(String, std::result::Result<Device, &'static str>), (test_name, test): Test| {
        let name = format!("{name}::{test_name}");
        match *device {
            Ok(device) => Trial::test(name, move || {
                test(device);
                Ok(())
            }),
            Err(reason) => Trial::test(name, || Ok(())).with_ignored_flag(true).with_kind(reason),
        }
    };
    let everywhere = TESTS.iter().flat_map(|test| columns.iter().map(|column| trial(column, *test)));
    let trials = everywhere.chain(OF_THE_CPU.iter().map(|test| trial(&columns[0], *test))).collect();
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}

fn round_trip<T: Element>(device: Device, values: &[T]) {
    let x = device.tensor(values).unwrap();
    assert_eq!(x.to_vec().unwrap(), values, "{} on {device}", T::DTYPE);
    let zeros = device.zeros::<T>(values.len()).unwrap();
    assert_eq!(zeros.to_vec().unwrap(), vec![T::default(); values.len()]);
    for &value in values {
        let full = device.full(7, value).unwrap();
        assert_eq!(full.to_vec().unwrap(), [value; 7], "{} on {device}", T::DTYPE);
    }
    let mut y = device.empty_like(&x).unwrap();
    assert_eq!((y.len(), y.shape(), y.device()), (x.len(), x.shape(), device));
    y.copy_from_slice(values).unwrap();
    y.slice_mut(1..2).unwrap().fill(T::default()).unwrap();
    let mut expected = values.to_vec();
    expected[1] = T::default();
    assert_eq!(y.to_vec().unwrap(), expected);
}

fn every_type_makes_the_round_trip(device: Device) {
    round_trip(device, &[true, true, false]);
    round_trip(device, &[i8::MIN, -1, 5]);
    round_trip(device, &[i16::MIN, -1, 5]);
    round_trip(device, &[i32::MIN, -1, 5]);
    round_trip(device, &[i64::MIN, -1, 0x0123_4567_89ab_cdef]);
    round_trip(device, &[u8::MAX, 1, 5]);
    round_trip(device, &[u16::MAX, 1, 5]);
    round_trip(device, &[u32::MAX, 1, 5]);
    round_trip(device, &[u64::MAX, 1, 0xfedc_ba98_7654_3210]);
    round_trip(device, &[f16::MAX, f16::from_f32(-1.5), f16::INFINITY]);
    round_trip(device, &[bf16::MAX, bf16::from_f32(-1.5), bf16::INFINITY]);
    round_trip(device, &[f32::MIN, -0.5, f32::INFINITY]);
    round_trip(device, &[f64::MIN, -0.1, f64::INFINITY]);
}

fn empty_tensors_work_everywhere(device: Device) {
    let mut x = device.tensor::<f32>(&[]).unwrap();
    assert!(x.is_empty() && x.to_vec().unwrap().is_empty());
    x.fill(1.0).unwrap();
    x.copy_from_slice(&[]).unwrap();
    assert!(x.slice(..).unwrap().is_empty() && x.slice(0..0).unwrap().to_vec().unwrap().is_empty());
    assert!(x.try_clone().unwrap().is_empty() && x.to_device(&Device::cpu()).unwrap().is_empty());
    assert_eq!(x.reshape([4, 0]).unwrap().shape(), [4, 0]);
    assert_eq!(device.zeros::<u8>((0, 3)).unwrap().len(), 0);
}

fn slices_are_rows_and_borrow(device: Device) {
    let mut x = device.tensor_from(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11], [4, 3]).unwrap();
    assert_eq!((x.shape(), x.strides()), (&[4, 3][..], &[3, 1][..]));
    let middle = x.slice(1..3).unwrap();
    assert_eq!((middle.shape(), middle.to_vec().unwrap()), (&[2, 3][..], vec![3, 4, 5, 6, 7, 8]));
    assert_eq!(middle.slice(1..).unwrap().reshape(3).unwrap().to_vec().unwrap(), [6, 7, 8]);
    assert_eq!(middle.to_device(&Device::cpu()).unwrap().to_vec().unwrap(), [3, 4, 5, 6, 7, 8]);
    assert!(matches!(x.slice(2..5), Err(Error::SliceOutOfRange { start: 2, end: 5, .. })));

    let (mut top, mut bottom) = x.view_mut().split_at_mut(1).unwrap();
    top.copy_from(&device.tensor(&[-1, -2, -3]).unwrap().view()).unwrap();
    bottom.slice_mut(2..).unwrap().copy_from_slice(&[7, 7, 7]).unwrap();
    assert_eq!(x.to_vec().unwrap(), [-1, -2, -3, 3, 4, 5, 6, 7, 8, 7, 7, 7]);
}

fn copies_move_between_devices(from: Device) {
    for to in devices() {
        let x = from.tensor_from(&[1.5f64, 2.5, 3.5, 4.5], (2, 2)).unwrap();
        let y = x.to_device(&to).unwrap();
        assert_eq!((y.device(), y.shape(), y.to_vec().unwrap()), (to, &[2, 2][..], vec![1.5, 2.5, 3.5, 4.5]));
    }
}

fn mistakes_are_errors_that_tell_the_sizes(device: Device) {
    let mut x = device.tensor(&[1, 2, 3]).unwrap();
    let mismatch = device.tensor_from(&[1, 2, 3], [2, 2]).unwrap_err();
    assert_eq!(mismatch.to_string(), "shape [2, 2] holds 4 elements but there are 3");
    let copy = x.copy_from_slice(&[1, 2]).unwrap_err();
    assert_eq!(copy.to_string(), "cannot copy 2 elements into 3: both must have the same length");
    assert!(matches!(x.copy_to_slice(&mut [0; 4]), Err(Error::LengthMismatch { source_len: 3, len: 4 })));
    assert!(matches!(device.zeros::<f64>(usize::MAX / 4), Err(Error::ShapeTooLarge { .. })));
    assert!(matches!(x.reshape(4), Err(Error::ShapeMismatch { .. })));
}

fn a_tensor_prints_its_shape_and_its_first_values(device: Device) {
    let x = device.full([3, 5], 0.5f32).unwrap();
    let text = format!("{x:?}");
    assert_eq!(text, format!("Tensor<f32>[3, 5] on {device} [0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, ..]"));
    let scalar = device.tensor_from(&[true], [0usize; 0]).unwrap();
    assert_eq!(format!("{scalar:?}"), format!("Tensor<bool>[] on {device} [true]"));
}

fn shapes_are_written_in_many_ways() {
    let shape = (2, 3).into_shape().unwrap();
    assert_eq!((shape.dims(), shape), (&[2, 3][..], [2, 3].into_shape().unwrap()));
    assert_eq!((1, 2, 3).into_shape().unwrap(), (&[1, 2, 3][..]).into_shape().unwrap());
    assert_eq!(f32::DTYPE, Dtype::F32);
}

fn tensors_cross_threads() {
    fn check<T: Send + Sync>(_: &T) {}
    let x = Device::cpu().tensor(&[1u8]).unwrap();
    check(&x);
    check(&x.view());
    check(&Device::cpu());
    check(Device::cpu().stream());
    std::thread::spawn(move || x.to_vec().unwrap()).join().unwrap();
}

fn the_cpu_has_no_cuda_slice_to_give() {
    let error = Device::cpu().zeros::<f32>(4).unwrap().into_cuda_slice().unwrap_err();
    assert!(matches!(error, Error::NotCuda { what: "this tensor" }));
}
