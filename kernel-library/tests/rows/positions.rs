//! Rotary embeddings.

use galatea::prelude::*;
use kernel_library::kernels;

use crate::{Real, check, devices, numbers};

fn ropes<T: Real>() {
    for device in devices() {
        for (tokens, heads, pairs) in [(1, 1, 1), (3, 5, 7), (4, 2, 32), (3, 17, 33), (2, 3, 64), (1, 3, 200)] {
            let table = 11;
            let angles: Vec<f64> =
                (0..table * pairs).map(|i| (i / pairs) as f64 * 10_000f64.powf(-((i % pairs) as f64) / pairs as f64)).collect();
            let [cosine, sine] = [f64::cos, f64::sin].map(|f| angles.iter().map(|a| f(*a) as f32).collect::<Vec<f32>>());
            // Each somewhere, one in no table.
            let positions: Vec<i64> =
                (0..tokens as i64).map(|token| if token == 2 { -1 } else { (token * 7 + 3) % table as i64 }).collect();
            let x = numbers::<T>(tokens * heads * 2 * pairs, 2.0, 5);
            let dx = device.tensor(&x).unwrap();
            let [dcosine, dsine] = [&cosine, &sine].map(|host| device.tensor(host).unwrap());
            let dpositions = device.tensor(&positions).unwrap();
            let [mut y, mut back] = [0; 2].map(|_| device.empty_like(&dx).unwrap());
            kernels::rope(&dx, &dcosine, &dsine, &dpositions, &mut y, heads, pairs)
                .grid(|config| (tokens, cdiv(heads, config.HEADS)))
                .launch()
                .unwrap();
            kernels::rope_backward(&dx, &dcosine, &dsine, &dpositions, &mut back, heads, pairs)
                .grid(|config| (tokens, cdiv(heads, config.HEADS)))
                .launch()
                .unwrap();
            // Multiplied as complex numbers.
            let turned = |i: usize, direction: f64| {
                let (head, at) = (i / (2 * pairs), i % (2 * pairs));
                let Ok(position) = usize::try_from(positions[head / heads]) else { return 0.0 };
                let angle = position * pairs + at % pairs;
                let (re, im) = (f64::from(cosine[angle]), f64::from(sine[angle]) * direction);
                let [a, b] = [0, pairs].map(|half| x[head * 2 * pairs + at % pairs + half].wide());
                if at < pairs { a * re - b * im } else { a * im + b * re }
            };
            check(device, &y.to_vec().unwrap(), 0.5, |i| turned(i, 1.0));
            check(device, &back.to_vec().unwrap(), 0.5, |i| turned(i, -1.0));
        }
    }
}

#[test]
fn rotates_and_rotates_back() {
    ropes::<f32>();
    ropes::<f16>();
    ropes::<bf16>();
}

#[test]
fn a_head_that_is_too_long_is_an_error() {
    let device = Device::cpu();
    let x = device.zeros::<f32>(514).unwrap();
    let mut y = device.empty_like(&x).unwrap();
    let positions = device.zeros::<i64>(1).unwrap();
    let error = kernels::rope(&x, &x, &x, &positions, &mut y, 1, 257).grid(|_| 1).launch().unwrap_err();
    assert!(matches!(error, Error::NoConfig { kernel: "rope", .. }), "{error}");
}
