//! The sum of an odd number of negative zeros is a negative zero.
//! x: zeros 300
//! y: zeros 3
fn kernel(x: Ptr<f32>, y: PtrMut<f32>) {
    let tile = -load(x + 100 * arange(0, 3).col() + arange(0, 100).row());
    store(y + arange(0, 3), sum(tile, axis = 1));
}

fn reference(x: Ptr<f32>, y: PtrMut<f32>) {
    for i in 0..3 {
        let mut total = -0.0;
        for j in 0..100 {
            total += -load(x + 100 * i + j);
        }
        store(y + i, total);
    }
}
