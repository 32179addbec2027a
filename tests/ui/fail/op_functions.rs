use galatea::op;
use galatea::ops::Tensor;
use galatea::prelude::*;

#[op("mylib::add", backward() = one_of_two)]
fn too_few_gradients(x: &Tensor, y: &Tensor) -> Result<Tensor> {
    Ok(x.clone())
}

fn one_of_two(grad: &Tensor) -> Result<Tensor> {
    Ok(grad.clone())
}

#[op("mylib::silu", backward(x) = without_x)]
fn too_few_arguments(x: &Tensor) -> Result<Tensor> {
    Ok(x.clone())
}

fn without_x(grad: &Tensor) -> Result<Tensor> {
    Ok(grad.clone())
}

#[op("mylib::scale", cpu = of_another_type)]
fn scale(x: &Tensor, by: f32) -> Result<Tensor> {
    Ok(x.clone())
}

fn of_another_type(x: &Tensor, by: f64) -> Result<Tensor> {
    Ok(x.clone())
}

#[op("mylib::relu", flops = |x| 2.0)]
fn relu(x: &Tensor) -> Result<Tensor> {
    Ok(x.clone())
}

fn main() {}
