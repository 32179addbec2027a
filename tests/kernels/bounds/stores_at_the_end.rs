//! A tile that is stored without a mask where it ends at the end of its tensor, or just behind it: nothing behind it is touched.
//! x: any 64
//! y: zeros 200
//! s: 73, 74, 75, 72
fn kernel(x: Ptr<i32>, y: PtrMut<i32>, s: usize) {
    let lanes = arange(0, 64);
    store(y + s + 2 * lanes, load(x + lanes));
}

fn reference(x: Ptr<i32>, y: PtrMut<i32>, s: usize) {
    for i in 0..64 {
        if s + 2 * i < 200 {
            store(y + s + 2 * i, load(x + i));
        }
    }
}
