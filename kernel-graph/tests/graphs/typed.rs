//! Calls of sessions with the types of the recorded function.

use galatea::graph::{Package, RunError, compile, export, input};
use galatea::ops::Tensor;
use galatea::prelude::*;
use galatea::{Dim, Dtype};

use crate::kernels::{silu, sum_difference};
use crate::numbers;

fn bits(tensor: &Tensor) -> Vec<u32> {
    tensor.to_vec::<f32>().unwrap().into_iter().map(f32::to_bits).collect()
}

pub(crate) fn calls_return_what_the_function_returns(device: Device) {
    let n = Dim::new("n", 1..=100);
    let one = || [input("x", [&n], Dtype::F32)];
    let (x, y) = (numbers(&device, 70), silu(&numbers(&device, 70)).unwrap());
    let tensor: Tensor = compile(|[x]| silu(x), one(), &device).unwrap().call([&x]).unwrap();
    assert_eq!(bits(&tensor), bits(&y));
    let two = [input("x", [&n], Dtype::F32), input("y", [&n], Dtype::F32)];
    let compiled = compile(|[x, y]| sum_difference(x, y), two, &device).unwrap();
    let (sum, difference) = compiled.call([&x, &y]).unwrap();
    let expected = sum_difference(&x, &y).unwrap();
    assert_eq!((bits(&sum), bits(&difference)), (bits(&expected.0), bits(&expected.1)));
    let stream = device.new_stream().unwrap();
    let (sum, difference) = compiled.on(&stream).call([&y, &x]).unwrap();
    assert_eq!(sum.stream(), Some(&stream));
    let expected = sum_difference(&y, &x).unwrap();
    assert_eq!((bits(&sum), bits(&difference)), (bits(&expected.0), bits(&expected.1)));
    let [a, b] = compile(|[x]| Ok([silu(x)?, silu(&silu(x)?)?]), one(), &device).unwrap().call([&x]).unwrap();
    assert_eq!((bits(&a), bits(&b)), (bits(&y), bits(&silu(&y).unwrap())));
    let (a, b, c) = compile(|[x]| Ok((silu(x)?, x.clone(), silu(x)?)), one(), &device).unwrap().call([&x]).unwrap();
    assert_eq!([bits(&a), bits(&b), bits(&c)], [bits(&y), bits(&x), bits(&y)]);
    let several: Vec<Tensor> = compile(|[x]| Ok(vec![silu(x)?; 3]), one(), &device).unwrap().call([&x]).unwrap();
    assert_eq!(several.iter().map(bits).collect::<Vec<_>>(), vec![bits(&y); 3]);
    let nothing: () = compile(|[_]| Ok(()), one(), &device).unwrap().call([&x]).unwrap();
    assert_eq!(nothing, ());
    // All that a session does.
    let error = compiled.checked().call([&x, &numbers(&device, 71)]).unwrap_err().to_string();
    assert!(error.starts_with("input `y`, axis 0: "), "{error}");
}

/// A package has no types to offer: the caller states them.
pub(crate) fn types_of_a_package_are_compared_with_its_program(device: Device) {
    let n = Dim::new("n", 1..=100);
    let inputs = [input("x", [&n], Dtype::F32), input("y", [&n], Dtype::F32)];
    let graph = export(|[x, y]| sum_difference(x, y), inputs).unwrap();
    let package = Package::from_bytes(graph.package().to_bytes().unwrap()).unwrap();
    let (x, y) = (numbers(&device, 70), silu(&numbers(&device, 70)).unwrap());
    let compiled = package.load(&device).unwrap().typed::<2, (Tensor, Tensor)>().unwrap();
    let (sum, _) = compiled.call([&x, &y]).unwrap();
    assert_eq!(bits(&sum), bits(&sum_difference(&x, &y).unwrap().0));
    assert_eq!(bits(&compiled.into_session().typed::<2, Vec<Tensor>>().unwrap().call([&x, &y]).unwrap()[0]), bits(&sum));
    let error = graph.compile(&device).unwrap().typed::<1, (Tensor, Tensor)>().unwrap_err();
    assert_eq!(error.to_string(), "wrong number of inputs: 2 expected (x, y), 1 given");
    let error = graph.compile(&device).unwrap().typed::<2, Tensor>().unwrap_err();
    assert!(matches!(error, RunError::OutputCount { returned: 2, typed: 1 }));
    assert_eq!(error.to_string(), "wrong number of outputs: the program returns 2, and the type of its results has 1");
}
