use galatea::op;
use galatea::ops::Tensor;
use galatea::prelude::*;

#[op("silu")]
fn without_a_namespace(x: &Tensor) -> Result<Tensor> {
    Ok(x.clone())
}

#[op]
fn without_a_name(x: &Tensor) -> Result<Tensor> {
    Ok(x.clone())
}

#[op("mylib::silu")]
struct NoFunction;

#[op("mylib::silu")]
fn of_other_types(x: &Vec<f32>, y: Tensor, name: String) -> Tensor {
    y
}

#[op("mylib::silu")]
async fn generic<T>(x: &Tensor, (a, b): (f32, f32)) -> Result<T> {
    Err(Error::NoDriver)
}

fn main() {}
