//! Mean and variance of rows by Welford's method: a device struct with functions, carried by a loop and combined by a reduction.
//!
//! ```sh
//! cargo run --release --example moments -- --device cpu
//! ```

mod report;

use galatea::prelude::*;

// ANCHOR: struct
#[device]
mod welford {
    /// Mean, sum of squared deviations, and number of some values.
    pub(crate) struct Welford {
        pub(crate) mean: Value<f32>,
        pub(crate) m2: Value<f32>,
        pub(crate) count: Value<f32>,
    }

    impl Welford {
        /// Of single values, where `is_there`; elsewhere of none.
        pub(crate) fn of(x: Value<f32>, is_there: Value<bool>) -> Self {
            Self { mean: select(is_there, x, 0.0), m2: zeros_like(x), count: is_there as f32 }
        }

        /// Of the values of both (Chan, Golub and LeVeque, 1979).
        pub(crate) fn combine(self, other: Self) -> Self {
            let count = self.count + other.count;
            let share = other.count / max(count, 1.0);
            let delta = other.mean - self.mean;
            Self { mean: self.mean + delta * share, m2: self.m2 + other.m2 + delta * delta * self.count * share, count }
        }

        pub(crate) fn variance(self) -> Value<f32> {
            self.m2 / max(self.count, 1.0)
        }
    }
}

use welford::Welford;
// ANCHOR_END: struct

// ANCHOR: kernel
/// The mean and the variance of each row: the row may be longer than a block, and is read once.
#[kernel(BLOCK_SIZE = 256)]
fn moments<const BLOCK_SIZE: usize>(x: Ptr<f32>, mean: PtrMut<f32>, variance: PtrMut<f32>, columns: usize) {
    let row = program_id(0);
    // Each position of the block has a state of its own ..
    let mut state = Welford::of(zeros::<f32>([BLOCK_SIZE]), full([BLOCK_SIZE], false));
    for start in range(0, columns, BLOCK_SIZE) {
        let column = start + arange(0, BLOCK_SIZE);
        let mask = column < columns;
        state = state.combine(Welford::of(load(x + row * columns + column, mask = mask), mask));
    }
    // .. and a reduction combines the states.
    let whole = reduce(state, 0, |a, b| a.combine(b));
    store(mean + row, whole.mean);
    store(variance + row, whole.variance());
}
// ANCHOR_END: kernel

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let report::Args { device, len } = report::Args::parse((1 << 22) + 3)?;
    let columns = len.isqrt().max(1);
    let rows = len / columns;
    println!("moments of {rows} rows of {columns} f32 on {device}");
    // Far from zero, where the mean of the squares less the square of the mean has no correct digit.
    let data: Vec<f32> = report::random(rows * columns, 1).into_iter().map(|x| x + 10_000.0).collect();
    let x = device.tensor(&data)?;
    let (mut mean, mut variance) = (device.zeros::<f32>(rows)?, device.zeros::<f32>(rows)?);
    // ANCHOR: launch
    moments::<256>(&x, &mut mean, &mut variance, columns).grid(rows).launch()?;
    // ANCHOR_END: launch

    let values = |tensor: &Tensor<f32>| Ok::<Vec<f64>, Error>(tensor.to_vec()?.into_iter().map(f64::from).collect());
    let row = |i: usize| data[i * columns..(i + 1) * columns].iter().map(|x| f64::from(*x));
    let mean_of = |i: usize| row(i).sum::<f64>() / columns as f64;
    report::check("mean", &values(&mean)?, mean_of, 1e-6)?;
    report::check("variance", &values(&variance)?, |i| row(i).map(|x| (x - mean_of(i)).powi(2)).sum::<f64>() / columns as f64, 1e-3)?;
    report::measure(&device, size_of_val(&*data), || moments::<256>(&x, &mut mean, &mut variance, columns).grid(rows).launch())?;
    Ok(())
}
