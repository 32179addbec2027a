#[kernel(N = 64)]
fn k<const N: usize>(x: Ptr<f32>, y: PtrMut<f32>, n: i32) {
    let offsets = program_id(0) * N + arange(0, N);
    let v = load(x + offsets, msk = offsets < n);
    let w = v + n;
    let u = sgimoid(w) * 2.0;
    if u > 1.0 {
        store(x + offsets, v);
    }
    match n {}
    store(y + offsets, u);
}
