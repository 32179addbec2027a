//! Only kernels launch: a function that is none cannot be recorded by mistake.

use galatea::ops::Tensor;
use galatea::prelude::*;

fn double(x: &Tensor) -> Result<Tensor> {
    Ok(x.clone())
}

fn main() -> Result<()> {
    let x = Tensor::from(Device::cpu().zeros::<f32>([4])?);
    double(&x).grid(1).launch()?;
    Ok(())
}
