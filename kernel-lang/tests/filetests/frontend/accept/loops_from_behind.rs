// Loops from behind: to the end, in steps, left, written out.
#[kernel]
fn k<const N: usize, const STEPS: usize>(x: Ptr<f32>, y: PtrMut<f32>, n: usize) {
    let mut sum = zeros::<f32>([N]);
    let mut count = 0;
    for i in (0..n).rev() {
        sum += load(x + i * N + arange(0, N));
    }
    for i in (0..n).step_by(3).rev() {
        count = count * 2 + i;
    }
    for i in static_range(0, STEPS).rev() {
        sum += i as f32;
    }
    for i in range(0, n).rev() {
        if load(x + i) == 0.0 {
            break;
        }
        count += 1;
    }
    store(y + arange(0, N), sum + count as f32);
}
