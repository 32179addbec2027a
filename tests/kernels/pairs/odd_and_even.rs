//! Neighbours of which the lower index is odd lie in two pairs.
//! x: any 1026
//! y: zeros 1026
fn kernel(x: Ptr<f32>, y: PtrMut<f32>) {
    let i = arange(0, 512);
    let (low, high) = (load(x + 2 * i + 1), load(x + 2 * i + 2));
    store(y + 2 * i + 2, low);
    store(y + 2 * i + 1, high);
}

fn reference(x: Ptr<f32>, y: PtrMut<f32>) {
    for i in 0..512 {
        store(y + 2 * i + 2, load(x + 2 * i + 1));
        store(y + 2 * i + 1, load(x + 2 * i + 2));
    }
}
