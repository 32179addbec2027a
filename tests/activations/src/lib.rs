//! Device functions in a crate of their own: kernels of other crates call them.

use tiles::prelude::*;

mod smooth {
    use tiles::prelude::*;

    /// `x * sigmoid(x)`, computed in `f32`.
    #[device(crate = ::tiles)]
    pub fn silu<T: Float>(x: Value<T>) -> Value<T> {
        let wide = x as f32;
        (wide * super::logistic_of(wide)) as T
    }
}

pub use smooth::silu;

/// Not seen outside of the crate, and part of what is.
#[device(crate = ::tiles)]
fn logistic_of(x: Value<f32>) -> Value<f32> {
    1.0 / (1.0 + exp(-x))
}

/// The offsets of this program's `N` elements, and which of them there are.
#[device(crate = ::tiles)]
pub fn window<const N: usize>(n: usize) -> (Value<usize>, Value<bool>) {
    let offsets = program_id(0) * N + arange(0, N);
    (offsets, offsets < n)
}

/// Loads, applies [`silu`] twice, and stores.
#[device(crate = ::tiles)]
pub fn apply<T: Float>(x: Ptr<T>, y: PtrMut<T>, offsets: Value<usize>, #[option] mask: Value<bool>) {
    let once = silu(load(x + offsets, mask = mask));
    store(y + offsets, smooth::silu(once), mask = mask);
}

/// Structs, with the functions that make them and those that take them.
#[device(crate = ::tiles)]
pub mod geometry {
    /// A point of the plane.
    pub struct Point {
        /// To the right.
        pub x: Value<f32>,
        /// Upwards.
        pub y: Value<f32>,
        /// A private field, which kernels of other crates can neither read nor set.
        weight: f32,
    }

    impl Point {
        /// The point at these coordinates.
        pub fn at(x: Value<f32>, y: Value<f32>) -> Self {
            Point { x, y, weight: 1.0 }
        }

        /// The point so far away.
        pub fn moved(self, x: Value<f32>, y: Value<f32>) -> Self {
            Point { x: self.x + x, y: self.y + y, ..self }.weighed()
        }

        fn weighed(mut self) -> Self {
            self.weight *= 2.0;
            self
        }
    }

    /// `v * scale + shift`
    pub struct Affine {
        /// Of the line.
        pub scale: Value<f32>,
        /// At 0.
        pub shift: Value<f32>,
    }

    impl Affine {
        /// First this one, then the other.
        pub fn then(self, other: Self) -> Self {
            Affine { scale: self.scale * other.scale, shift: other.on(self.shift) }
        }

        /// Of both coordinates.
        pub fn apply(self, point: Point) -> Point {
            Point { x: self.on(point.x), y: self.on(point.y), ..point }
        }

        fn on(self, v: Value<f32>) -> Value<f32> {
            fma(v, self.scale, self.shift)
        }
    }

    /// Where both coordinates are 0.
    pub fn origin() -> Point {
        Point::at(0.0, 0.0)
    }

    /// As the crow flies.
    pub fn distance(a: Point, b: Point) -> Value<f32> {
        hypot(a.x - b.x, a.y - b.y)
    }
}
