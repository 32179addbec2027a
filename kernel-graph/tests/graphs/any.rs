//! Launches that take the dtype of a type parameter from their arguments.

use galatea::ops::{self, Any, Tensor};
use galatea::prelude::*;
use galatea::{Dim, Dtype, autotune};
use kernel_graph::{Session, input};

use crate::kernels::silu_elements;
use crate::round_trip::export;

/// y = x in another type
#[kernel]
fn convert<T: Float, U: Number>(x: Ptr<T>, y: PtrMut<U>, n: usize) {
    let at = program_id(0) * 64 + arange(0, 64);
    store(y + at, load(x + at, mask = at < n) as U, mask = at < n);
}

/// x = a * x + b, in place, with scalars on both sides of the tensor
#[kernel]
fn scale<T: Number>(a: T, x: PtrMut<T>, b: T, n: usize) {
    let at = program_id(0) * 64 + arange(0, 64);
    store(x + at, load(x + at, mask = at < n) * a + b, mask = at < n);
}

/// y = x, by rows of 16
#[kernel]
fn copy_rows<T: Element>(x: View<T, 2>, y: ViewMut<T, 2>) {
    let row = program_id(0);
    y.store([row, 0], x.load([row, 0], [1, 16]));
}

#[autotune(configs = [Config { BLOCK: 64 }, Config { BLOCK: 128 }], key = [n], prune = |config| config.BLOCK > 2 * n)]
#[kernel]
fn tuned_scale<T: Float, const BLOCK: usize>(x: Ptr<T>, y: PtrMut<T>, a: T, n: usize) {
    let at = program_id(0) * BLOCK + arange(0, BLOCK);
    store(y + at, load(x + at, mask = at < n) * a, mask = at < n);
}

/// The heuristic needs the value of a scalar of the type, so a launch must name the type.
#[kernel(heuristics(WIDE = size_of_val(&a) > 2))]
fn wide<T: Float, const WIDE: bool>(y: PtrMut<T>, a: T) {
    store(y + arange(0, 16), if WIDE { a } else { 0.0 });
}

/// A float type with a conversion from `f32`.
trait OfF32: Element {
    fn of(value: f32) -> Self;
}

impl OfF32 for f32 {
    fn of(value: f32) -> f32 {
        value
    }
}

impl OfF32 for f16 {
    fn of(value: f32) -> f16 {
        f16::from_f32(value)
    }
}

impl OfF32 for bf16 {
    fn of(value: f32) -> bf16 {
        bf16::from_f32(value)
    }
}

fn numbers<T: OfF32>(device: &Device, n: usize) -> Tensor {
    let numbers: Vec<T> = (0..n).map(|i| T::of(i as f32 * 0.75 - 3.0)).collect();
    device.tensor(&numbers).unwrap().into()
}

fn silu(x: &Tensor) -> Result<Tensor> {
    let (n, mut y) = (x.numel(), x.empty_like()?);
    silu_elements::<Any, 64>(x, &mut y, &n).grid(n.cdiv(64)).launch()?;
    Ok(y)
}

fn bits<T: Element>(tensor: &Tensor) -> Vec<u64> {
    tensor.to_vec::<T>().unwrap().into_iter().map(T::bits).collect()
}

/// The launch with `Any` gives the elements of the launch that names the type, eagerly and in a graph, also for a part of a tensor.
pub(crate) fn the_kernel_of_the_dtype_runs(device: Device) {
    fn check<T: OfF32 + Float>(device: Device) {
        let n = Dim::new("n", 1..=200);
        let body = |x: &Tensor| silu(&x.slice(Dim::from(1)..x.dim(0))?);
        let graph = export(|[x]| body(x), [input("x", [&n], T::DTYPE)]).unwrap().named("silu");
        let dtype = T::DTYPE;
        assert_eq!(
            graph.to_string(),
            format!(
                "graph silu(x: {dtype}[n]) where n in 1..=200
  %0 = view %x at 1 : {dtype}[n - 1]
  %1 = alloc : {dtype}[n - 1]
  %2 = launch silu_elements<T = {dtype}, BLOCK = 64> [(n + 62) / 64, 1, 1] (x = %0, y = %1, n = n - 1) : {dtype}[n - 1]
  return %2
"
            )
        );
        let session = Session::new(graph, &device).unwrap();
        for len in [1, 2, 65, 200] {
            let x = numbers::<T>(&device, len);
            let part = device.tensor(&x.to_vec::<T>().unwrap()[1..]).unwrap();
            let mut expected = device.empty_like(&part).unwrap();
            silu_elements::<T, 64>(&part, &mut expected, len - 1).grid(4).launch().unwrap();
            let expected = bits::<T>(&expected.into());
            assert_eq!(bits::<T>(&body(&x).unwrap()), expected, "{len} elements of {dtype} on {device:?}");
            assert_eq!(bits::<T>(&session.run([&x]).unwrap()[0]), expected, "{len} elements of {dtype} in a graph on {device:?}");
        }
    }
    check::<f32>(device);
    check::<f16>(device);
    check::<bf16>(device);
}

pub(crate) fn each_type_parameter_has_a_dtype_of_its_own(device: Device) {
    let x = numbers::<f16>(&device, 70);
    let expected: Vec<i32> = x.to_vec::<f16>().unwrap().iter().map(|v| v.to_f32() as i32).collect();
    let converted = |launch: &dyn Fn(&mut Tensor) -> Result<()>| {
        let mut y = Tensor::zeros(&device, Dtype::I32, [70]).unwrap();
        launch(&mut y).unwrap();
        y.to_vec::<i32>().unwrap()
    };
    assert_eq!(converted(&|y| convert::<Any, Any>(&x, y, 70).grid(2).launch()), expected);
    assert_eq!(converted(&|y| convert::<f16, Any>(&x, y, 70).grid(2).launch()), expected);
    assert_eq!(converted(&|y| convert::<Any, i32>(&x, y, 70).grid(2).launch()), expected);
    // A typed tensor is an argument of the parameter that has a type.
    let mut typed = device.zeros::<i32>(70).unwrap();
    convert::<Any, i32>(&x, &mut typed, 70).grid(2).launch().unwrap();
    assert_eq!(typed.to_vec().unwrap(), expected);
}

pub(crate) fn views_have_the_shapes_of_their_tensors(device: Device) {
    fn check<T: OfF32>(device: Device) {
        let x = numbers::<T>(&device, 60).reshape([5, 12]).unwrap();
        let mut y = x.empty_like().unwrap();
        copy_rows::<Any>(&x, &mut y).grid(5).launch().unwrap();
        assert_eq!(bits::<T>(&y), bits::<T>(&x), "{} on {device:?}", T::DTYPE);
    }
    check::<f32>(device);
    check::<f16>(device);
}

pub(crate) fn a_write_copies_shared_elements(device: Device) {
    let mut x = numbers::<bf16>(&device, 8);
    let (before, kept) = (bits::<bf16>(&x), x.clone());
    scale::<Any>(2.0, &mut x, 1.0, 8).grid(1).launch().unwrap();
    let expected: Vec<u64> = kept.to_vec::<bf16>().unwrap().iter().map(|v| bf16::from_f32(2.0 * v.to_f32() + 1.0).bits()).collect();
    assert_eq!((bits::<bf16>(&kept), bits::<bf16>(&x)), (before, expected));
    drop(kept);
    let address = x.view::<bf16>().unwrap().address();
    ops::deny_copies(|| scale::<Any>(2.0, &mut x, 1.0, 8).grid(1).launch()).unwrap();
    assert_eq!(x.view::<bf16>().unwrap().address(), address, "written in place");
}

pub(crate) fn scalars_have_the_dtype_of_the_tensors(device: Device) {
    let mut x: Tensor = device.tensor(&[1i32, -2, 3]).unwrap().into();
    scale::<Any>(-3, &mut x, 2.0f64, 3).grid(1).launch().unwrap();
    assert_eq!(x.to_vec::<i32>().unwrap(), [-1, 8, -7]);
    let mut x: Tensor = device.tensor(&[1.0f32, -2.0]).unwrap().into();
    scale::<Any>(0.1, &mut x, 3, 2).grid(1).launch().unwrap();
    assert_eq!(x.to_vec::<f32>().unwrap(), [0.1f32.mul_add(1.0, 3.0), 0.1f32.mul_add(-2.0, 3.0)]);
    // No argument but the tensor depends on a dim.
    let n = Dim::new("n", 0..=9);
    let body = |x: &Tensor| {
        let mut y = x.clone();
        scale::<Any>(0.5, &mut y, -3, 9).grid(1).launch()?;
        Ok(y)
    };
    let graph = export(|[x]| body(x), [input("x", [&n], Dtype::F16)]).unwrap();
    assert_eq!(
        graph.to_string(),
        "graph graph(x: f16[n]) where n in 0..=9
  %0 = launch scale<T = f16> [1, 1, 1] (a = 0.5, x = %x, b = -3.0, n = 9) : f16[n]
  return %0
"
    );
    let x = numbers::<f16>(&device, 7);
    assert_eq!(bits::<f16>(&Session::new(graph, &device).unwrap().run([&x]).unwrap()[0]), bits::<f16>(&body(&x).unwrap()));
}

pub(crate) fn an_autotuned_kernel_runs_for_the_dtype(device: Device) {
    fn check<T: OfF32 + Float>(device: Device) {
        let x = numbers::<T>(&device, 200);
        let [mut y, mut expected] = [(); 2].map(|()| x.empty_like().unwrap());
        tuned_scale::<Any>(&x, &mut y, 0.5, 200).grid(|config| cdiv(200, config.BLOCK)).launch().unwrap();
        tuned_scale::<T>(&x, &mut expected, T::of(0.5), 200).grid(|config| cdiv(200, config.BLOCK)).launch().unwrap();
        assert_eq!(bits::<T>(&y), bits::<T>(&expected), "{} on {device:?}", T::DTYPE);
    }
    check::<f32>(device);
    check::<bf16>(device);
}

/// rustc infers the type from typed tensors, and a bound of user code implies that of the launcher.
pub(crate) fn types_are_inferred_from_typed_tensors() {
    fn silu<T: Float>(x: &galatea::Tensor<T>) -> Result<galatea::Tensor<T>> {
        let mut y = Device::cpu().empty_like(x)?;
        silu_elements::<T, 64>(x, &mut y, x.len()).grid(1).launch()?;
        Ok(y)
    }
    let x = Device::cpu().tensor(&[1.0f32, -2.0]).unwrap();
    let mut y = Device::cpu().empty_like(&x).unwrap();
    silu_elements::<_, 64>(&x, &mut y, x.len()).grid(1).launch().unwrap();
    assert_eq!(y.to_vec().unwrap(), silu(&x).unwrap().to_vec().unwrap());
    let mut z = Device::cpu().tensor(&[1i32, -2]).unwrap();
    scale(2, &mut z, 1, 2).grid(1).launch().unwrap();
    assert_eq!(z.to_vec().unwrap(), [3, -3]);
    let mut wide_f32 = Device::cpu().zeros::<f32>(16).unwrap();
    wide(&mut wide_f32, 1.0).grid(|_| 1).launch().unwrap();
    assert_eq!(wide_f32.to_vec().unwrap(), [1.0; 16]);
}

/// The error of a launch, and that of the same launch while it is recorded.
fn refused(x: (Dtype, usize), y: (Dtype, usize), launch: impl Fn(&Tensor, &mut Tensor) -> Result<()>) -> String {
    let [real_x, mut real_y] = [x, y].map(|(dtype, len)| Tensor::zeros(&Device::cpu(), dtype, [len]).unwrap());
    let eager = launch(&real_x, &mut real_y).unwrap_err().to_string();
    let recorded = export(|[a, b]| launch(a, &mut b.clone()), [input("x", [x.1], x.0), input("y", [y.1], y.0)]);
    assert_eq!(recorded.expect_err("it is refused").to_string().split("\nthe operation").next(), Some(eager.as_str()));
    eager
}

pub(crate) fn tensors_of_one_type_have_one_dtype() {
    let launch = |x: &Tensor, y: &mut Tensor| silu_elements::<Any, 64>(x, y, 8).grid(1).launch();
    assert_eq!(
        refused((Dtype::F32, 8), (Dtype::Bf16, 8), launch),
        "kernel `silu_elements`: arguments `x` and `y` are both of type `T`, and have elements of types `f32` and `bf16`
help: convert the elements of one of them"
    );
}

pub(crate) fn a_dtype_is_one_of_the_bound() {
    let launch = |x: &Tensor, y: &mut Tensor| silu_elements::<Any, 64>(x, y, 8).grid(1).launch();
    assert_eq!(
        refused((Dtype::I32, 8), (Dtype::I32, 8), launch),
        "kernel `silu_elements`: argument `x` has elements of type `i32`, and `T` allows `f16`, `bf16`, `f32` and `f64`
help: convert the elements, or launch another kernel for `i32`"
    );
    let converted = |x: &Tensor, y: &mut Tensor| convert::<f32, Any>(x, y, 8).grid(1).launch();
    assert_eq!(
        refused((Dtype::F32, 8), (Dtype::F8E4M3, 8), converted).lines().next(),
        Some(
            "kernel `convert`: argument `y` has elements of type `f8e4m3`, and `U` allows `i8`, `i16`, `i32`, `i64`, `u8`, `u16`, `u32`, `u64`, \
             `f16`, `bf16`, `f32` and `f64`"
        )
    );
    let mut y = Tensor::zeros(&Device::cpu(), Dtype::I32, [8]).unwrap();
    let x = y.clone();
    let tuned = tuned_scale::<Any>(&x, &mut y, 1, 8).grid(|_| 1).launch().unwrap_err().to_string();
    assert_eq!(
        tuned.lines().next(),
        Some("kernel `tuned_scale`: argument `x` has elements of type `i32`, and `T` allows `f16`, `bf16`, `f32` and `f64`")
    );
}

pub(crate) fn a_scalar_is_a_number_of_the_dtype() {
    let launch = |a: f64| move |_: &Tensor, y: &mut Tensor| scale::<Any>(1, y, a, 8).grid(1).launch();
    assert_eq!(
        refused((Dtype::U8, 8), (Dtype::U8, 8), launch(0.5)),
        "kernel `scale`: argument `b` is 0.5, which `u8` cannot represent
help: `b` has the dtype of `x`: convert the elements of `x`, or pass another number"
    );
    let first = |a: f64, dtype: Dtype| refused((dtype, 8), (dtype, 8), launch(a)).lines().next().map(str::to_owned);
    assert_eq!(first(256.0, Dtype::U8).as_deref(), Some("kernel `scale`: argument `b` is 256.0, which `u8` cannot represent"));
    assert_eq!(first(1e6, Dtype::F16).as_deref(), Some("kernel `scale`: argument `b` is 1000000.0, which `f16` cannot represent"));
}
