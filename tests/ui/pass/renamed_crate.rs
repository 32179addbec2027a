//! `galatea` under another path, and `f16` and `bf16` from the prelude.

mod vendored {
    pub use galatea as gpu;
}

use vendored::gpu::prelude::*;

#[device(crate = crate::vendored::gpu)]
fn twice<T: Float>(x: Value<T>) -> Value<T> {
    once(x) + once(x)
}

#[device(crate = crate::vendored::gpu)]
fn once<T: Float>(x: Value<T>) -> Value<T> {
    x
}

#[kernel(crate = crate::vendored::gpu, T = [f16, bf16], N = 32)]
fn sum<T: Float, const N: usize>(a: T, x: Ptr<T>, y: PtrMut<T>) {
    let offsets = arange(0, N);
    store(y + offsets, load(x + offsets) + twice(a));
}

fn main() -> vendored::gpu::Result<()> {
    let device = Device::cpu();
    let x = device.tensor(&[f16::from_f32(1.5); 32])?;
    let mut y = device.zeros::<f16>(32)?;
    sum::<f16, 32>(f16::from_f32(0.25), &x, &mut y).grid(1).launch()?;
    assert_eq!(y.to_vec()?[31].to_f32(), 2.0);
    Ok(())
}
