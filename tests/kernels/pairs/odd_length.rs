//! The last element of a tensor of odd length has no neighbour. The kernel accesses that element, and no memory behind it.
//! x: any 513
//! y: counting 513
//! n: 257, 256, 300
fn kernel(x: Ptr<f32>, y: PtrMut<f32>, n: usize) {
    let i = arange(0, 512);
    let (low, high) = (load(x + 2 * i, mask = i < n), load(x + 2 * i + 1, mask = i < n));
    store(y + 2 * i, high, mask = i < n);
    store(y + 2 * i + 1, low, mask = i < n);
}

fn reference(x: Ptr<f32>, y: PtrMut<f32>, n: usize) {
    for i in 0..n {
        if i < 257 {
            let low = load(x + 2 * i);
            if i < 256 {
                store(y + 2 * i, load(x + 2 * i + 1));
                store(y + 2 * i + 1, low);
            } else {
                store(y + 2 * i, 0.0);
            }
        }
    }
}
