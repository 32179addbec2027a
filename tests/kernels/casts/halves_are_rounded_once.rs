//! An `f64` just above or below the midpoint of two halves must not be rounded to `f32` first, which would give the midpoint.
//! x: counting 256
//! y: zeros 1024
//! z: zeros 4
//! n: 0, 1, 2, 77
fn kernel(x: Ptr<f64>, y: PtrMut<u16>, z: PtrMut<u16>, n: usize) {
    let at = arange(0, 256);
    let middle = 1.0 + (2.0 * load(x + at) + 1.0) / 2048.0;
    store(y + at, bitcast::<u16>((middle + 1e-12) as f16));
    store(y + 256 + at, bitcast::<u16>((middle - 1e-12) as f16));
    let wide = 1.0 + (2.0 * (load(x + at) % 64.0) + 1.0) / 256.0;
    store(y + 512 + at, bitcast::<u16>((wide + 1e-12) as bf16));
    store(y + 768 + at, bitcast::<u16>((wide - 1e-12) as bf16));
    // A scalar.
    let one = 1.0 + (2.0 * load(x + n) + 1.0) / 256.0;
    store(z, bitcast::<u16>((one + 1e-12) as bf16));
    store(z + 1, bitcast::<u16>((one - 1e-12) as bf16));
    store(z + 2, bitcast::<u16>((one as f32 + 0.001) as bf16));
}

fn reference(x: Ptr<f64>, y: PtrMut<u16>, z: PtrMut<u16>, n: usize) {
    for i in 0..256 {
        store(y + i, (15361 + i) as u16);
        store(y + 256 + i, (15360 + i) as u16);
        store(y + 512 + i, (16257 + i % 64) as u16);
        store(y + 768 + i, (16256 + i % 64) as u16);
    }
    store(z, (16257 + n) as u16);
    store(z + 1, (16256 + n) as u16);
    store(z + 2, (16257 + n) as u16);
}
