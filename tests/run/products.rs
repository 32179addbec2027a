//! Helpers of the tests of matrix products: operands whose sums are exact in any order, their sums in `f64`, and a kernel for each schedule.

use galatea::prelude::*;

use crate::lab::Lab;
use crate::value::{FloatValue, Value};

/// Multiples of 1/8 from -2 to 2.
pub(crate) fn eighths<T: Value>(lab: &mut Lab, len: usize) -> Vec<T> {
    lab.numbers::<f64>(len, -16.49, 16.49).into_iter().map(|number| T::near(number.round() / 8.0)).collect()
}

/// The sum of products, in `f64`.
pub(crate) fn product<T: FloatValue>(a: impl Fn(usize) -> T, b: impl Fn(usize) -> T, k: usize) -> f64 {
    (0..k).fold(0.0, |sum, at| sum + a(at).wide() * b(at).wide())
}

/// An element whose value is a number of `f64`.
pub(crate) trait Term: Value {
    fn number(self) -> f64;
    /// The unit of elements whose products and sums are exact, and how many of it they are at most.
    const UNIT: (f64, f64) = (0.125, 16.0);
}

macro_rules! terms {
    ($($ty:ident $unit:expr, $most:expr, |$x:ident| $wide:expr;)*) => {$(
        impl Term for $ty {
            fn number(self) -> f64 {
                let $x = self;
                $wide
            }
            const UNIT: (f64, f64) = ($unit, $most);
        }
    )*};
}
terms! {
    f16 1.0, 2.0, |x| x.to_f64();
    bf16 0.125, 16.0, |x| x.to_f64();
    f32 0.125, 16.0, |x| x.into();
    f64 0.125, 16.0, |x| x;
    i8 1.0, 128.0, |x| x.into();
    u8 1.0, 255.0, |x| x.into();
    i32 1.0, 1e6, |x| x.into();
    f8e4m3 0.125, 16.0, |x| x.to_f32().into();
    f8e5m2 0.25, 8.0, |x| x.to_f32().into();
}

/// Elements whose products and sums are exact.
pub(crate) fn exact<T: Term>(lab: &mut Lab, len: usize) -> Vec<T> {
    let (unit, most) = T::UNIT;
    lab.numbers::<f64>(len, -most - 0.49, most + 0.49).into_iter().map(|number| T::near(number.round() * unit + 0.0)).collect()
}

/// A module with the kernel `z = a * b` for each schedule: `product_kernels! { warps { one(num_warps = 1); two(num_warps = 2); } }`.
macro_rules! product_kernels {
    ($module:ident { $($name:ident($($schedule:ident = $value:literal),*);)* }) => {
        mod $module {
            $(pub(super) mod $name {
                use galatea::prelude::*;

                #[kernel($($schedule = $value),*)]
                pub(crate) fn product_kernel<
                    T: Float,
                    const TRANSPOSED_A: bool,
                    const TRANSPOSED_B: bool,
                    const M: usize,
                    const N: usize,
                    const K: usize,
                >(
                    x: Ptr<T>,
                    y: Ptr<T>,
                    z: PtrMut<f32>,
                    rows: usize,
                    columns: usize,
                    inner: usize,
                ) {
                    let row = (program_id(0) * M + arange(0, M)).col();
                    let column = (program_id(1) * N + arange(0, N)).row();
                    let mut total = zeros::<f32>([M, N]);
                    for first in range(0, inner, K) {
                        let k = first + arange(0, K);
                        let a = load(
                            x + if TRANSPOSED_A { k.row() * rows + row } else { row * inner + k.row() },
                            mask = (row < rows) & (k.row() < inner),
                        );
                        let b = load(
                            y + if TRANSPOSED_B { column * inner + k.col() } else { k.col() * columns + column },
                            mask = (column < columns) & (k.col() < inner),
                        );
                        total += dot(a, b);
                    }
                    store(z + row * columns + column, total, mask = (row < rows) & (column < columns));
                }
            })*
        }
    };
}
pub(crate) use product_kernels;
