use activations::geometry::{Affine, Point};
use galatea::prelude::*;

struct Plain {
    x: f32,
}

#[device]
impl Plain {
    fn x(self) -> f32 {
        self.x
    }
}

#[kernel]
fn private(y: PtrMut<f32>) {
    let point = Point::at(1.0, 2.0);
    store(y, point.weight);
    store(y, point.weighed().x);
    store(y, Point { x: 1.0, y: 2.0, weight: 3.0 }.x);
    let line = Affine { scale: 1.0, shfit: 0.0 };
}

#[kernel]
fn plain(y: PtrMut<f32>) {
    store(y, Plain { x: 1.0 }.x);
}

fn main() {}
