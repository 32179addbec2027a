#[kernel(B = [1024, 65536])]
fn k<const B: usize>(x: Ptr<f32>, y: PtrMut<f32>, n: usize) {
    let mut acc = zeros::<f32>([B]);
    for start in range(0, n, B, num_stages = 4) {
        let at = start + arange(0, B);
        acc += load(x + at, mask = at < n);
    }
    store(y + arange(0, B), acc);
}
