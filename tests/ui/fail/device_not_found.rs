use galatea::prelude::*;

fn plain(x: f32) -> f32 {
    x
}

#[kernel]
fn k(x: Ptr<f32>, y: PtrMut<f32>) {
    store(y, plain(load(x)) + unheard_of(load(x)) + activations::relu(load(x)));
}

fn main() {
    let device = Device::cpu();
    let x = device.tensor(&[1.0f32]).unwrap();
    let mut y = device.empty_like(&x).unwrap();
    k(&x, &mut y).grid(1).launch().unwrap();
}
