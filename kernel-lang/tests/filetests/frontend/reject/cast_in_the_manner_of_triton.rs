#[kernel]
fn k(x: Ptr<bf16>, y: PtrMut<f32>) {
    store(y, load(x).to(f32));
}
