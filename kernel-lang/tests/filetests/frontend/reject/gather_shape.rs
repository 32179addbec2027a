#[kernel]
fn k(x: Ptr<f32>, y: PtrMut<f32>) {
    let v = load(x + arange(0, 64)[(.., None)] + arange(0, 32)[(None, ..)]);
    store(y + arange(0, 16), gather(v, arange(0, 16), 0));
}
