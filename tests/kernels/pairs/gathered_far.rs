//! Indices of 64 bits are loaded. Twice such an index wraps to a small one.
//! at: whole 256
//! x: counting 64
//! y: zeros 512
fn kernel(at: Ptr<i64>, x: Ptr<i32>, y: PtrMut<i32>) {
    let i = arange(0, 256);
    let pair = load(at + i) ^ -9223372036854775808;
    store(y + i, load(x + 2 * pair) + 1000 * load(x + 2 * pair + 1));
}

fn reference(at: Ptr<i64>, x: Ptr<i32>, y: PtrMut<i32>) {
    for i in 0..256 {
        let pair = load(at + i);
        if pair >= 0 {
            store(y + i, load(x + 2 * pair) + 1000 * load(x + 2 * pair + 1));
        }
    }
}
