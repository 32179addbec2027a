use galatea::op;
use galatea::ops::Tensor;
use galatea::prelude::*;

#[op("mylib::silu", backwards(x) = silu_backward)]
fn unknown_option(x: &Tensor) -> Result<Tensor> {
    Ok(x.clone())
}

#[op("mylib::silu", backward(x, z) = silu_backward)]
fn unknown_name(x: &Tensor) -> Result<Tensor> {
    Ok(x.clone())
}

#[op("mylib::silu", cpu = silu_backward, cpu = silu_backward)]
fn twice(x: &Tensor) -> Result<Tensor> {
    Ok(x.clone())
}

#[op("mylib::fill", backward(n) = silu_backward)]
fn no_tensor(n: usize) -> Result<()> {
    Ok(())
}

fn main() {}
