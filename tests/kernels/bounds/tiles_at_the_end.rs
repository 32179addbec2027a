//! A tile that is loaded without a mask where it ends at the end of its tensor, or just behind it, or begins in front of it.
//! x: any 200
//! y: zeros 64
//! s: 136, 137, 138, 135, 73, 74, 75, 72, 76, 0, -1, -2, 11, 10, 12
fn kernel(x: Ptr<i32>, y: PtrMut<i32>, s: usize) {
    let lanes = arange(0, 64);
    store(y + lanes, load(x + s + 2 * lanes, other = 2));
}

fn reference(x: Ptr<i32>, y: PtrMut<i32>, s: usize) {
    for i in 0..64 {
        store(y + i, if s + 2 * i >= 0 && s + 2 * i < 200 { load(x + s + 2 * i) } else { 2 });
    }
}
