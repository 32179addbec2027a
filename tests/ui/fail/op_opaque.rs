use galatea::op;
use galatea::ops::Tensor;
use galatea::prelude::*;

#[op("mylib::sort", opaque)]
fn without_fake(x: &Tensor) -> Result<Tensor> {
    Ok(x.clone())
}

#[op("mylib::silu", fake = |x| x.empty_like())]
fn not_opaque(x: &Tensor) -> Result<Tensor> {
    Ok(x.clone())
}

#[op("mylib::count", opaque, opaque, fake = |x| x.empty_like())]
fn opaque_twice(x: &Tensor) -> Result<Tensor> {
    Ok(x.clone())
}

fn main() {}
