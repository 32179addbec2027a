//! A loop reads two tensors at the same places, and one of them ends earlier.
//! x: whole 5000
//! w: whole 700
//! v: whole 1300
//! y: zeros 1
//! n: 0, 128, 700, 1000, 1400, 5000
//! step: 128, 256, 384
fn kernel(x: Ptr<f32>, w: Ptr<f32>, v: Ptr<f32>, y: PtrMut<f32>, n: usize, step: usize) {
    let mut total = zeros::<f32>([128]);
    for i in range(0, n, step) {
        let at = i + arange(0, 128);
        total += load(x + at) - 3.0 * load(w + at) + 2.0 * load(v + at);
    }
    store(y, sum(total));
}

fn reference(x: Ptr<f32>, w: Ptr<f32>, v: Ptr<f32>, y: PtrMut<f32>, n: usize, step: usize) {
    let mut total = 0.0;
    for i in range(0, n, step) {
        for j in 0..128 {
            let at = i + j;
            total += load(x + at) - 3.0 * load(w + at) + 2.0 * load(v + at);
        }
    }
    store(y, total);
}
