//! Two rows with masks that end at loaded numbers. Behind both ends, what is computed from both rows has one value, but not behind one of them.
//! x: whole 3000
//! ends: counting 64
//! y: zeros 1024
//! z: zeros 1024
//! at: 0, 1, 7, 15, 32, 40
//! scale: 3, 40, 90, 11, 32, 20
//! t: 2, 1, 3, 5, 4, 7
fn kernel(x: Ptr<f16>, ends: Ptr<i64>, y: PtrMut<f32>, z: PtrMut<f32>, at: usize, scale: usize, t: f32) {
    let column = arange(0, 1024);
    let v = load(x + column, mask = column < load(ends + at) * scale, other = 0.5) as f32;
    let u = load(x + 1600 + column, mask = column < load(ends + at / 2 + 9) * scale, other = 2.0) as f32;
    let w = (v * v - t) * 16.0 + (v + 2.0) * t - abs(v - 1.0) * v;
    let product = (v + 1.0) * 3.0 - t * v + (v - 2.0) * (v + 4.0);
    store(y + column, w + max(product));
    let both = u - v;
    store(z + column, (both * both - t) * 16.0 + (both + 2.0) * t - abs(both - 1.0) * both - max(both * t, 3.0 - both) * abs(both + t) - product);
}

fn reference(x: Ptr<f16>, ends: Ptr<i64>, y: PtrMut<f32>, z: PtrMut<f32>, at: usize, scale: usize, t: f32) {
    let mut most = -1000.0;
    for j in 0..1024 {
        let v = if j < load(ends + at) * scale { load(x + j) as f32 } else { 0.5 };
        most = max(most, (v + 1.0) * 3.0 - t * v + (v - 2.0) * (v + 4.0));
    }
    for j in 0..1024 {
        let v = if j < load(ends + at) * scale { load(x + j) as f32 } else { 0.5 };
        let u = if j < load(ends + at / 2 + 9) * scale { load(x + 1600 + j) as f32 } else { 2.0 };
        let w = (v * v - t) * 16.0 + (v + 2.0) * t - abs(v - 1.0) * v;
        let product = (v + 1.0) * 3.0 - t * v + (v - 2.0) * (v + 4.0);
        store(y + j, w + most);
        let both = u - v;
        store(z + j, (both * both - t) * 16.0 + (both + 2.0) * t - abs(both - 1.0) * both - max(both * t, 3.0 - both) * abs(both + t) - product);
    }
}
