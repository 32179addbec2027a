//! Rust that a kernel cannot say.

use galatea::prelude::*;

#[kernel]
fn kernel_with_rust(x: Ptr<f32>, y: PtrMut<f32>, n: usize) {
    match n {
        0 => store(y, 0.0),
        _ => store(y, 1.0),
    }
    let square = |v| v * v;
    store(y, square(load(&x)));
    'rows: for i in 0..n {
        println!("{i}");
    }
}

fn main() {}
