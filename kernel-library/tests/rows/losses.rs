//! Cross entropy and its gradient.

use galatea::prelude::*;
use kernel_library::kernels;

use crate::{COLUMNS, ROWS, Real, check, devices, numbers};

pub(crate) const IGNORED: i64 = -7;

/// The logarithm of the sum of exponentials.
pub(crate) fn lse<T: Real>(row: &[T]) -> f64 {
    let largest = row.iter().map(|v| v.wide()).fold(f64::NEG_INFINITY, f64::max);
    largest + row.iter().map(|v| (v.wide() - largest).exp()).sum::<f64>().ln()
}

/// The loss of a row and its gradient, before it is scaled.
pub(crate) fn reference<T: Real>(row: &[T], target: i64) -> (f64, Vec<f64>) {
    if target == IGNORED {
        return (0.0, vec![0.0; row.len()]);
    }
    let Some(class) = usize::try_from(target).ok().filter(|class| *class < row.len()) else {
        return (f64::NAN, vec![f64::NAN; row.len()]);
    };
    let total = lse(row);
    let gradient = row.iter().enumerate().map(|(j, v)| (v.wide() - total).exp() - if j == class { 1.0 } else { 0.0 }).collect();
    (total - row[class].wide(), gradient)
}

fn losses<T: Real>() {
    for device in devices() {
        for classes in COLUMNS.into_iter().chain([9001]) {
            for scale in [1.0, 30.0] {
                let x = numbers::<T>(ROWS * classes, scale, classes as u64);
                let last = classes as i64 - 1;
                let targets = [0, last, IGNORED, last / 2, classes as i64];
                let upstream = numbers::<f32>(ROWS, 3.0, 2);
                let [dx, mut gradient] = [device.tensor(&x).unwrap(), device.empty::<T>(x.len()).unwrap()];
                let (dtargets, dupstream) = (device.tensor(&targets).unwrap(), device.tensor(&upstream).unwrap());
                let [mut losses, mut kept] = [0; 2].map(|_| device.empty::<f32>(ROWS).unwrap());
                kernels::cross_entropy(&dx, &dtargets, &mut losses, &mut kept, classes, IGNORED).grid(|_| ROWS).launch().unwrap();
                kernels::cross_entropy_backward(&dx, &dtargets, &kept, &dupstream, &mut gradient, classes, IGNORED, 0.25)
                    .grid(|config| ROWS * cdiv(classes, config.BLOCK_SIZE))
                    .launch()
                    .unwrap();

                let want: Vec<_> = x.chunks(classes).zip(targets).map(|(row, target)| reference(row, target)).collect();
                check(device, &kept.to_vec().unwrap(), scale, |i| lse(&x[i * classes..][..classes]));
                check(device, &losses.to_vec().unwrap(), scale, |i| want[i].0);
                // An exponent is off by its own rounding.
                check(device, &gradient.to_vec().unwrap(), 0.05 * scale, |i| {
                    f64::from(upstream[i / classes]) * 0.25 * want[i / classes].1[i % classes]
                });
            }
        }
    }
}

#[test]
fn cross_entropies() {
    losses::<f32>();
    losses::<f16>();
    losses::<bf16>();
}

/// Classes that cannot be have no share; a row that has NaN has a loss that is NaN.
#[test]
fn infinities_and_nan() {
    for device in devices() {
        let x = device.tensor(&[f32::NEG_INFINITY, 0.0, 0.0, 1.0, f32::NAN, 0.0]).unwrap();
        let targets = device.tensor(&[1i64, 0]).unwrap();
        let [mut losses, mut lse] = [0; 2].map(|_| device.empty::<f32>(2).unwrap());
        kernels::cross_entropy(&x, &targets, &mut losses, &mut lse, 3, IGNORED).grid(|_| 2).launch().unwrap();
        check(device, &losses.to_vec().unwrap(), 0.0, |i| [2f64.ln(), f64::NAN][i]);
    }
}

/// A vocabulary that is filled up with the smallest number, rows of nothing else, and offsets.
#[test]
fn the_largest_numbers_and_offsets() {
    for device in devices() {
        for classes in [3, 520, 9001] {
            let ordinary = numbers::<f32>(classes, 3.0, 13);
            let padded = ordinary.iter().enumerate().map(|(i, v)| if i < classes - classes / 3 { *v } else { f32::MIN });
            let shifted = ordinary.iter().map(|v| v + 1e4);
            let same = [f32::MIN, f32::MAX, f32::NEG_INFINITY].into_iter().flat_map(|value| vec![value; classes]);
            let x: Vec<f32> = padded.chain(shifted).chain(same).collect();
            let targets = [0i64, 1, 2, 0, 1];
            let (dx, dtargets) = (device.tensor(&x).unwrap(), device.tensor(&targets).unwrap());
            let [mut losses, mut kept] = [0; 2].map(|_| device.empty::<f32>(targets.len()).unwrap());
            kernels::cross_entropy(&dx, &dtargets, &mut losses, &mut kept, classes, IGNORED).grid(|_| targets.len()).launch().unwrap();
            let row = |i: usize| &x[i * classes..][..classes];
            // The last has no class: the sum is of nothing, and a loss of it no number.
            let want = |i: usize| if i < 4 { lse(row(i)) } else { f64::NEG_INFINITY };
            check(device, &kept.to_vec().unwrap(), 1.0, want);

            let upstream = device.tensor(&[1.0f32; 5]).unwrap();
            let mut gradient = device.empty::<f32>(x.len()).unwrap();
            kernels::cross_entropy_backward(&dx, &dtargets, &kept, &upstream, &mut gradient, classes, IGNORED, 1.0)
                .grid(|config| targets.len() * cdiv(classes, config.BLOCK_SIZE))
                .launch()
                .unwrap();
            // Of the numbers that are kept: a logarithm of 10,000 has an ulp of 1e-3, and beside f32::MIN the classes do not count at all.
            let (kept, gradient) = (kept.to_vec().unwrap(), gradient.to_vec().unwrap());
            check(device, &gradient[..4 * classes], 1e-3, |at| {
                let (i, class) = (at / classes, at % classes);
                (f64::from(x[at]) - f64::from(kept[i])).exp() - f64::from(u8::from(class as i64 == targets[i]))
            });
        }
    }
}
