#[kernel(N = 64)]
fn blocks_and_scopes<const N: usize>(x: Ptr<f32>, y: PtrMut<f32>, mut n: usize) {
    let offsets = arange(0, N);
    let v = load(x + offsets);
    let v = {
        let s = v * 2.0;
        let v = s + 1.0;
        v * v
    };
    {
        let offsets = offsets + 1;
        n = n + 1;
        store(y + offsets, v, mask = offsets < n);
    }
    let _ = v;
    let _unused = 3;
    store(y + offsets, v);
}
