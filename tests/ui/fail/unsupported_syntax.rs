//! Rust that a kernel cannot say.

use galatea::prelude::*;

#[kernel]
fn kernel_with_rust(x: Ptr<f32>, y: PtrMut<f32>, n: usize) {
    if let Some(first) = n {
        store(y, first);
    }
    let (square, _) = (|v| v * v, 0);
    store(y, square(load(&x)));
    'rows: for i in (0..n).rev() {
        println!("{i}");
    }
}

fn main() {}
