use galatea::prelude::*;

#[kernel]
fn k(x: Ptr<i32>, y: PtrMut<i32>, z: PtrMut<f64>) {
    store(y, activations::silu(load(x)));
    store(z, activations::silu(load(z)));
    activations::apply(x, z, 0);
    let (offsets, inside) = activations::window::<0>(8);
}

fn main() {}
