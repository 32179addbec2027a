#[autotune(configs = product(B = [64, 128], SCALE = [0.5, 1.0 / 3.0]) if SCALE < 0.5 || B > 64)]
#[kernel]
fn k<const B: usize, const SCALE: f32>(x: Ptr<f32>, y: PtrMut<f64>) {
    let v = load(x + arange(0, B)) * SCALE;
    let w = if SCALE > 0.4 { v } else { v + 1.0 };
    store(y + arange(0, B), w as f64 + SCALE as f64);
}
