#[kernel]
fn k(x: Ptr<f32>, y: PtrMut<u16>) {
    store(y, bitcast::<u16>(load(x)));
}
