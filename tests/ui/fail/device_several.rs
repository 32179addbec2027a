use galatea::prelude::*;

#[device]
fn half(x: Value<f32>) -> Value<f32> {
    x * 0.5
}

#[kernel(unknown = 1)]
fn k(x: Ptr<bf16>, y: PtrMut<f32>, z: Vec<f32>) {
    store(y, half(load(x)));
    store(y, arrange(0, 4));
    half(1.0) + z
}

fn main() {
    let device = Device::cpu();
    let x = device.tensor(&[bf16::ONE]).unwrap();
    let mut y = device.tensor(&[1.0f32]).unwrap();
    k(&x, &mut y, 1).grid(1).launch().unwrap();
}
