//! Floats divided by powers of two, up to those whose reciprocals are not normal numbers, and by others.
//! x: any 1024
//! z: any 1024
//! y: zeros 4096
//! u: zeros 2048
//! grid: 1
fn kernel(x: Ptr<f32>, z: Ptr<f16>, y: PtrMut<f32>, u: PtrMut<f16>) {
    let i = arange(0, 1024);
    let (v, w) = (load(x + i), load(z + i));
    store(y + i, v / 4.0);
    store(y + 1024 + i, v / -0.5);
    store(y + 2048 + i, v / 85070591730234615865843651857942052864.0);
    store(y + 3072 + i, v / 170141183460469231731687303715884105728.0 + v / 1.5);
    store(u + i, w / 8.0);
    store(u + 1024 + i, w / 32768.0);
}

fn reference(x: Ptr<f32>, z: Ptr<f16>, y: PtrMut<f32>, u: PtrMut<f16>) {
    for i in 0..1024 {
        let v = load(x + i);
        let w = load(z + i);
        store(y + i, v / 4.0);
        store(y + 1024 + i, v / -0.5);
        store(y + 2048 + i, v / 85070591730234615865843651857942052864.0);
        store(y + 3072 + i, v / 170141183460469231731687303715884105728.0 + v / 1.5);
        store(u + i, w / 8.0);
        store(u + 1024 + i, w / 32768.0);
    }
}
