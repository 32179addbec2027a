//! Transposes.

use galatea::prelude::*;
use kernel_library::kernels;

use crate::devices;

fn transposed<T: Element + PartialEq + std::fmt::Debug>(value: impl Fn(usize) -> T) {
    for device in devices() {
        for (rows, columns) in [(1, 1), (1, 77), (77, 1), (32, 64), (33, 31), (65, 130)] {
            let x: Vec<T> = (0..rows * columns).map(&value).collect();
            let dx = device.tensor(&x).unwrap();
            let mut y = device.empty::<T>(x.len()).unwrap();
            kernels::transpose(&dx, &mut y, rows, columns)
                .grid(|config| (cdiv(rows, config.ROWS), cdiv(columns, config.COLUMNS)))
                .launch()
                .unwrap();
            let want: Vec<T> = (0..x.len()).map(|i| x[i % rows * columns + i / rows]).collect();
            assert_eq!(y.to_vec().unwrap(), want, "{device}: {rows} x {columns} {}", T::DTYPE);
        }
    }
}

#[test]
fn transposes_of_every_type() {
    transposed(|i| i as f32);
    transposed(|i| f16::from_bits(i as u16));
    transposed(|i| bf16::from_bits(i as u16));
    transposed(|i| i as u8);
    transposed(|i| i as f64);
}
