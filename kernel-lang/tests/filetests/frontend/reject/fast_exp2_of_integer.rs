#[kernel]
fn k(x: Ptr<i32>, y: PtrMut<f32>) {
    let a = load(x);
    store(y, fast_exp2(a));
}
