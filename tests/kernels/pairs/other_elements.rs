//! Masked loads of two neighbours give two different constants (`other`), or zero where one load names none.
//! x: any 1024
//! y: zeros 1024
//! n: 512, 300, 0
fn kernel(x: Ptr<f16>, y: PtrMut<f16>, n: usize) {
    let i = arange(0, 512);
    let (low, high) = (load(x + 2 * i, mask = i < n, other = -0.0), load(x + 2 * i + 1, mask = i < n, other = 1.5));
    let (first, second) = (load(x + 2 * i, mask = i >= n), load(x + 2 * i + 1, mask = i >= n, other = -3.0));
    store(y + 2 * i, select(i % 2 == 0, high, first));
    store(y + 2 * i + 1, select(i % 3 == 0, low, second));
}

fn reference(x: Ptr<f16>, y: PtrMut<f16>, n: usize) {
    for i in 0..512 {
        let (low, high) = (load(x + 2 * i, mask = i < n, other = -0.0), load(x + 2 * i + 1, mask = i < n, other = 1.5));
        let (first, second) = (load(x + 2 * i, mask = i >= n), load(x + 2 * i + 1, mask = i >= n, other = -3.0));
        store(y + 2 * i, select(i % 2 == 0, high, first));
        store(y + 2 * i + 1, select(i % 3 == 0, low, second));
    }
}
