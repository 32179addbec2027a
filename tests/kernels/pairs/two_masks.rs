//! Neighbours under masks that differ in one element.
//! x: any 1024
//! y: zeros 1024
//! n: 512, 511, 1, 0, 300
fn kernel(x: Ptr<f16>, y: PtrMut<f16>, n: usize) {
    let i = arange(0, 512);
    let (low, high) = (load(x + 2 * i, mask = i < n), load(x + 2 * i + 1, mask = i + 1 < n));
    store(y + 2 * i, high, mask = i < n);
    store(y + 2 * i + 1, low, mask = i + 1 < n);
}

fn reference(x: Ptr<f16>, y: PtrMut<f16>, n: usize) {
    for i in 0..n {
        if i + 1 < n {
            store(y + 2 * i, load(x + 2 * i + 1));
            store(y + 2 * i + 1, load(x + 2 * i));
        }
    }
}
