//! Two reductions of the same elements differ only in the sign of a zero, so that they are not one reduction.
//! x: whole 64
//! y: zeros 2
fn kernel(x: Ptr<f32>, y: PtrMut<u32>) {
    // No element is a zero of its own.
    let v = load(x + arange(0, 64)) * 2.0 + 1.0;
    store(y, bitcast::<u32>(reduce(v, 0, |a, b| select(a < b, 0.0, select(b < a, 0.0, a)))));
    store(y + 1, bitcast::<u32>(reduce(v, 0, |a, b| select(a < b, -0.0, select(b < a, -0.0, a)))));
}

fn reference(x: Ptr<f32>, y: PtrMut<u32>) {
    store(y + 1, 0x8000_0000);
}
