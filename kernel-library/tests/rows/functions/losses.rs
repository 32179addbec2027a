//! Cross entropy and its gradient.

use galatea::prelude::*;
use kernel_library::{cross_entropy, cross_entropy_backward, cross_entropy_forward};

use super::{SHAPES, agree, devices, extents, of_every_type, sample};
use crate::Real;
use crate::losses::{IGNORED, lse, reference};

fn losses<T: Real>(shapes: &[&[usize]]) {
    for device in devices() {
        for shape in shapes {
            let (_, rows, classes) = extents(shape);
            let leading = &shape[..shape.len() - 1];
            let (logits, host) = sample::<T>(device, shape, 5.0);
            let cycle = [0, IGNORED, classes as i64 - 1, classes as i64 / 2, classes as i64];
            let hosts: Vec<i64> = (0..rows).map(|row| cycle[row % cycle.len()]).collect();
            let targets = device.tensor_from(&hosts, leading).unwrap();
            let want: Vec<_> = host.chunks(classes).zip(&hosts).map(|(row, target)| reference(row, *target)).collect();

            let (got, saved) = cross_entropy_forward(&logits, &targets, IGNORED).unwrap();
            agree(device, &got, leading, 5.0, |i| want[i].0);
            agree(device, &cross_entropy(&logits, &targets, IGNORED).unwrap(), leading, 5.0, |i| want[i].0);
            agree(device, &saved.lse, leading, 5.0, |i| lse(&host[i * classes..][..classes]));
            assert_eq!(saved.ignore_index, IGNORED);

            let (dlosses, upstream) = sample::<f32>(device, leading, 3.0);
            let dlogits = cross_entropy_backward(&dlosses, &logits, &targets, &saved).unwrap();
            agree(device, &dlogits, shape, 0.5, |i| f64::from(upstream[i / classes]) * want[i / classes].1[i % classes]);
        }
    }
}

#[test]
fn cross_entropy_of_tensors() {
    of_every_type!(losses, SHAPES);
}
