#[kernel]
fn k(x: Ptr<f32>, z: Ptr<f32>, y: PtrMut<f32>, n: usize) {
    let mut p = x;
    if n > 3 {
        p = z;
    }
    store(y, load(p));
}
