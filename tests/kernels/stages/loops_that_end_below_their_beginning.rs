//! Loops whose end lies far below their beginning have no iterations: nothing is loaded ahead through a pointer without a known length.
//! x: whole 1000
//! y: zeros 1
//! low: 0, 700, 2000000000, 2000000000
//! high: 1000, 0, 0, -2000000000
#[kernel(unchecked)]
fn kernel(x: Ptr<f32>, y: PtrMut<f32>, low: usize, high: usize) {
    let p = (x + 0) as u64 as Ptr<f32>;
    let mut total = 0.0;
    for i in range(low, high, 100, num_stages = 3) {
        total += load(p + i);
    }
    store(y, total);
}

fn reference(x: Ptr<f32>, y: PtrMut<f32>, low: usize, high: usize) {
    let mut total = 0.0;
    for i in range(low, high, 100) {
        total += load(x + i);
    }
    store(y, total);
}
