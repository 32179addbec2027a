type Half = f16;

#[kernel]
fn k(x: Ptr<Half>, y: PtrMut<f32>, s: Scalar) {
    let v = load(x) as Half;
    store(y, v as f32);
}
