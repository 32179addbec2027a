//! Indices of 32 bits are loaded. Twice such an index does not wrap, so the accesses are a pair.
//! at: whole 256
//! x: counting 64
//! y: zeros 512
fn kernel(at: Ptr<i32>, x: Ptr<i32>, y: PtrMut<i32>) {
    let i = arange(0, 256);
    let pair = load(at + i) as i64;
    let (low, high) = (load(x + 2 * pair), load(x + 2 * pair + 1));
    store(y + i, low + 1000 * high);
}

fn reference(at: Ptr<i32>, x: Ptr<i32>, y: PtrMut<i32>) {
    for i in 0..256 {
        let pair = load(at + i) as i64;
        if pair >= 0 {
            store(y + i, load(x + 2 * pair) + 1000 * load(x + 2 * pair + 1));
        }
    }
}
