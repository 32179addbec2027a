//! Names that are neither builtins nor device functions. rustc suggests a name that is near, and the other mistakes are shown, too.

use galatea::prelude::*;

fn plain(x: f32) -> f32 {
    x
}

#[device]
fn gelu(x: Value<f32>) -> Value<f32> {
    x * sigmoid(1.702 * x)
}

#[kernel(N = 64)]
fn k<const N: usize>(x: Ptr<f32>, y: PtrMut<f32>, n: usize) {
    let at = program_id(0) * N + arange(0, N);
    let v = load(x + at, msk = at < n);
    stor(y + at, gelo(v));
    let w = plain(v) + softplus(at);
    if v > 0.0 {
        store(y + at, w);
    }
    store(y + at, v + at);
}

fn main() -> galatea::Result<()> {
    let device = Device::cpu();
    let x = device.tensor(&[1.0f32])?;
    let mut y = device.empty_like(&x)?;
    k::<64>(&x, &mut y, 1).grid(1).launch()
}
