#[device]
fn scaled(a: f32, b: f32) -> f32 {
    let mut sum = a;
    if b > 0.0 {
        sum += b;
    }
    sum
}

#[kernel]
fn k(x: Ptr<f32>, y: PtrMut<f32>, n: f32) {
    let v = load(x + arange(0, 8));
    store(y, reduce(v, 0, scaled));
    store(y, reduce(v, 0, exp));
    store(y, reduce(v, 0, frobnicate));
}
