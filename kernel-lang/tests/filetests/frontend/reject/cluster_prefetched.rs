#[kernel(num_ctas = 2, unchecked, B = 64)]
fn k<const B: usize>(x: Ptr<f32>, y: PtrMut<f32>, out: PtrMut<f32>) {
    let mut acc = zeros::<f32>([B, B]);
    for s in range(0, 256, B, num_stages = 3) {
        let at = multiple_of(s, 64);
        acc += load(y + at + arange(0, B).row());
    }
    store(y + arange(0, B), full::<f32>([B], -1.0));
    store(out, sum(acc));
}
