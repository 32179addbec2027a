#[kernel]
fn literals<T: Float>(y: PtrMut<T>, i: PtrMut<u8>, n: i32) {
    let a = 1_000;
    let b = 0xffu8;
    let c = -1.5e-3f32;
    let d = 2f64;
    let e = true;
    let f: i16 = -7;
    let g: T = 0.5;
    store(i, b - 0b11);
    store(i + 1, 200);
    store(y + a, g * 2.0 + 1);
    store(y + n + 1, select(e, 1.0, -g));
    store(y - 3, (c as f64 + d) as T);
}
