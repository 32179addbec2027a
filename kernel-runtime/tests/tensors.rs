//! Tensors on the CPU, on simulated GPUs where they are built in, and on the GPUs where there are any: the same test on each, reported as ignored where there
//! is none.

mod axpy;
mod trusted;

use axpy::axpy;
use kernel_runtime::prelude::*;
use kernel_runtime::private::{Args, Kernel, Launch, Param, ParamKind, PtrMutArg, Schedule};
use kernel_runtime::{Dtype, FirstDifference, IntoShape, compare};
use libtest_mimic::{Arguments, Trial};

/// A test's name, and what it does on a device.
type Test = (&'static str, fn(Device));

const TESTS: &[Test] = &[
    ("every_type_makes_the_round_trip", every_type_makes_the_round_trip),
    ("empty_tensors_work_everywhere", empty_tensors_work_everywhere),
    ("slices_are_rows_and_borrow", slices_are_rows_and_borrow),
    ("halves_are_arguments_of_one_launch", halves_are_arguments_of_one_launch),
    ("a_split_outside_the_axis_is_an_error", a_split_outside_the_axis_is_an_error),
    ("copies_move_between_devices", copies_move_between_devices),
    ("mistakes_are_errors_that_name_the_sizes", mistakes_are_errors_that_name_the_sizes),
    ("a_tensor_prints_its_shape_and_its_first_values", a_tensor_prints_its_shape_and_its_first_values),
    ("a_tensor_displays_its_elements_and_its_device", a_tensor_displays_its_elements_and_its_device),
    ("a_summary_shows_the_elements_of_its_indices", a_summary_shows_the_elements_of_its_indices),
    ("a_failed_copy_is_displayed_instead_of_the_elements", a_failed_copy_is_displayed_instead_of_the_elements),
    ("tensors_and_views_of_any_devices_are_compared", tensors_and_views_of_any_devices_are_compared),
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

    let (mut top, mut bottom) = x.split_at_mut(1).unwrap();
    top.copy_from(&device.tensor(&[-1, -2, -3]).unwrap().view()).unwrap();
    bottom.slice_mut(2..).unwrap().copy_from_slice(&[7, 7, 7]).unwrap();
    assert_eq!(x.to_vec().unwrap(), [-1, -2, -3, 3, 4, 5, 6, 7, 8, 7, 7, 7]);
}

/// Exchanges the elements of `x` and `y`, and adds `x` to `y`.
fn exchange<'a>(x: impl PtrMutArg<'a, f32>, y: impl PtrMutArg<'a, f32>, n: usize) -> Launch<'a, 5, 0> {
    const IR: &str = r#"
kernel @exchange(%x: ptr_mut<f32>, %y: ptr_mut<f32>, %n: i64) file "src/exchange.rs" {
    %0 = program_id {axis = 0} : i64 @3:9
    %1 = const {value = 32} : i64 @3:25
    %2 = mul %0, %1 : i64 @3:23
    %3 = arange {start = 0, end = 32} : tile<i64, [32]> @3:40
    %4 = broadcast %2 : tile<i64, [32]> @3:38
    %5 = add %4, %3 : tile<i64, [32]> @3:38
    %6 = broadcast %n : tile<i64, [32]> @4:26
    %7 = lt %5, %6 : tile<bool, [32]> @4:24
    %8 = load %x, %5 {mask = %7} : tile<f32, [32]> @5:13
    %9 = load %y, %5 {mask = %7} : tile<f32, [32]> @6:13
    %10 = add %8, %9 : tile<f32, [32]> @7:13
    store %x, %5, %9 {mask = %7} @8:5
    store %y, %5, %10 {mask = %7} @9:5
    return
}
"#;
    const PARAMS: &[Param] = &[
        Param { name: "x", kind: ParamKind::PointerMut },
        Param { name: "y", kind: ParamKind::PointerMut },
        Param { name: "n", kind: ParamKind::Scalar },
    ];
    static EXCHANGE: Kernel = trusted::kernel("exchange", IR, Schedule::DEFAULT, PARAMS, &[]);
    let mut args = Args::new(&EXCHANGE);
    args.pointer_mut("x", x);
    args.pointer_mut("y", y);
    args.scalar(n);
    trusted::launch(args, [])
}

fn halves_are_arguments_of_one_launch(device: Device) {
    // Rows of three elements: the second half begins at an address that is no multiple of 16 bytes.
    let data: Vec<f32> = (0..150).map(|i| i as f32).collect();
    let mut x = device.tensor_from(&data, [50, 3]).unwrap();
    let (mut top, mut bottom) = x.split_at_mut(25).unwrap();
    assert_eq!((top.shape(), bottom.shape(), bottom.address() - top.address()), (&[25, 3][..], &[25, 3][..], 4 * 75));
    exchange(&mut top, &mut bottom, 75).grid(cdiv(75, 32)).launch().unwrap();
    let exchanged: Vec<f32> = (0..150).map(|i| if i < 75 { (i + 75) as f32 } else { (2 * i - 75) as f32 }).collect();
    assert_eq!(x.to_vec().unwrap(), exchanged);

    // One half is read, a part of the other written.
    let (top, mut bottom) = x.split_at_mut(40).unwrap();
    let (mut first, rest) = bottom.slice_mut(..).unwrap().split_at_mut(4).unwrap();
    axpy::<f32, 64>(2.0, &top, &mut first, 12).grid(1).launch().unwrap();
    assert_eq!(rest.as_view().to_vec().unwrap(), exchanged[132..]);
    let (read, written) = x.split_at(40).unwrap();
    assert_eq!(read.to_vec().unwrap(), exchanged[..120]);
    let expected: Vec<f32> = (0..12).map(|i| exchanged[120 + i] + 2.0 * exchanged[i]).chain(exchanged[132..].iter().copied()).collect();
    assert_eq!(written.to_vec().unwrap(), expected);
    // The parts of a view live as long as the tensor's borrow, not as long as the view.
    let (first, second) = x.view().split_at(1).unwrap().0.reshape(3).unwrap().split_at(2).unwrap();
    assert_eq!((first.to_vec().unwrap(), second.to_vec().unwrap()), (exchanged[..2].to_vec(), exchanged[2..3].to_vec()));
}

fn a_split_outside_the_axis_is_an_error(device: Device) {
    let mut x = device.tensor_from(&[1, 2, 3, 4, 5, 6], [2, 3]).unwrap();
    for (index, lens) in [(0, (0, 6)), (1, (3, 3)), (2, (6, 0))] {
        let (top, bottom) = x.split_at_mut(index).unwrap();
        assert_eq!((top.len(), bottom.len()), lens);
        assert_eq!((top.shape(), bottom.shape()), (&[index, 3][..], &[2 - index, 3][..]));
    }
    for index in [3, usize::MAX] {
        let refused = [x.split_at(index).err(), x.split_at_mut(index).err(), x.view().split_at(index).err()];
        for error in refused {
            match error {
                Some(Error::SliceOutOfRange { start: 0, end, shape }) => assert_eq!((end, &shape[..]), (index, &[2, 3][..])),
                other => panic!("{other:?}"),
            }
        }
    }
    let error = x.split_at_mut(3).unwrap_err().to_string();
    assert_eq!(error, "range 0..3 does not fit the first axis of shape [2, 3]");
    assert_eq!(x.to_vec().unwrap(), [1, 2, 3, 4, 5, 6]);
    // A tensor without axes is one row; one without elements has rows too.
    let mut one = device.tensor_from(&[7], [0usize; 0]).unwrap();
    assert_eq!(one.split_at_mut(1).unwrap().0.as_view().to_vec().unwrap(), [7]);
    assert!(one.split_at_mut(2).is_err());
    let none = device.zeros::<f32>([4, 0]).unwrap();
    assert_eq!(none.split_at(3).unwrap().1.shape(), [1, 0]);
}

fn copies_move_between_devices(from: Device) {
    for to in devices() {
        let x = from.tensor_from(&[1.5f64, 2.5, 3.5, 4.5], (2, 2)).unwrap();
        let y = x.to_device(&to).unwrap();
        assert_eq!((y.device(), y.shape(), y.to_vec().unwrap()), (to, &[2, 2][..], vec![1.5, 2.5, 3.5, 4.5]));
    }
}

fn mistakes_are_errors_that_name_the_sizes(device: Device) {
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

/// The suffix of the device in the text of a tensor.
fn suffix(device: Device) -> String {
    if device.is_cpu() { String::new() } else { format!(", device='{device}'") }
}

fn a_tensor_displays_its_elements_and_its_device(device: Device) {
    let mut x = device.tensor(&[0.5f32, -2.0, 1.0, 8.25]).unwrap();
    assert_eq!(x.to_string(), format!("tensor([ 0.5000, -2.0000,  1.0000,  8.2500]{})", suffix(device)));
    assert_eq!(x.slice(2..).unwrap().to_string(), format!("tensor([1.0000, 8.2500]{})", suffix(device)));
    assert_eq!(x.slice_mut(3..).unwrap().to_string(), format!("tensor([8.2500]{})", suffix(device)));
    let empty = device.zeros::<u8>([0, 3]).unwrap();
    assert_eq!(empty.to_string(), format!("tensor([]{}, size=(0, 3), dtype=u8)", suffix(device)));
    // The dtype fits exactly into the line of the elements, and a device does not.
    let x = device.full(5, 12345.5f64).unwrap();
    let elements = ["12345.5000"; 5].join(", ");
    let suffixes = if device.is_cpu() { ", dtype=f64".to_owned() } else { format!(",\n       device='{device}', dtype=f64") };
    assert_eq!(x.to_string(), format!("tensor([{elements}]{suffixes})"));
}

/// The shown elements are far apart, so that several copies read them. The view starts inside its memory.
fn a_summary_shows_the_elements_of_its_indices(device: Device) {
    let x = device.tensor_from(&(0..8 * 5000).collect::<Vec<i64>>(), [8, 5000]).unwrap();
    let view = x.slice(1..).unwrap().reshape([7, 2, 2500]).unwrap();
    let row = |first: i64| {
        let shown = |index: i64| format!("{:>5}", first + index);
        let (start, end) = ([0, 1, 2].map(shown).join(", "), [2497, 2498, 2499].map(shown).join(", "));
        format!("[{start},  ..., {end}]")
    };
    let matrix = |index: i64| format!("[{},\n         {}]", row(5000 * (index + 1)), row(5000 * (index + 1) + 2500));
    let separator = ",\n\n        ";
    let (start, end) = ([0, 1, 2].map(matrix).join(separator), [4, 5, 6].map(matrix).join(separator));
    let expected = format!("tensor([{start}{separator}...{separator}{end}]{})", suffix(device));
    // A long name of a device is on a line of its own.
    assert_eq!(view.to_string().replace(",\n       device", ", device"), expected);
}

fn a_failed_copy_is_displayed_instead_of_the_elements(device: Device) {
    let (x, empty) = (device.full([40, 50], 1i32).unwrap(), device.zeros::<f32>(0).unwrap());
    let captured = Replay::capture(device.stream(), || {
        let error = x.to_vec().unwrap_err();
        assert!(matches!(error, Error::InCapture { .. }));
        let text = x.to_string().replace(",\n       ", ", ");
        assert_eq!(text, format!("tensor(<{error}>{}, dtype=i32)", suffix(device)));
        // There is nothing to copy.
        assert_eq!(empty.to_string(), format!("tensor([]{})", suffix(device)));
        Ok(())
    });
    assert!(captured.is_ok_and(|replay| replay.is_empty()));
}

fn tensors_and_views_of_any_devices_are_compared(device: Device) {
    for other in devices() {
        let mut a = device.tensor_from(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0], [3, 2]).unwrap();
        let b = other.tensor_from(&[1.0f32, 2.5, 3.0, 4.0, 5.0, 4.0], [3, 2]).unwrap();
        let whole = compare(&a, b.view()).unwrap();
        assert_eq!((whole.differing, whole.max_absolute_error, whole.max_relative_error, whole.max_ulp), (2, 2.0, 0.5, 1 << 22));
        let first = FirstDifference { index: vec![0, 1], a: "2.0".to_owned(), b: "2.5".to_owned() };
        assert_eq!(whole.first_difference, Some(first));
        let last = compare(a.slice(1..).unwrap(), b.slice(1..).unwrap()).unwrap();
        assert_eq!((last.shape, last.first_difference.unwrap().index), (vec![2, 2], vec![1, 1]));
        assert!(compare(&a.slice_mut(1..2).unwrap(), b.slice(1..2).unwrap()).unwrap().bit_equal, "{device} and {other}");
    }
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
