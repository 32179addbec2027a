#[device]
fn put(y: PtrMut<f32>, x: f32) {
    store(y, x);
}

#[kernel]
fn k(x: Ptr<f32>, y: PtrMut<f32>, z: PtrMut<f16>) {
    put(x, 1.0);
    put(z, 1.0);
    put(1.0, 1.0);
    put(y, y);
}
