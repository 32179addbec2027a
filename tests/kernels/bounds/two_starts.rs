//! Several tiles of equal steps in one tensor, some of which begin in front of it or end behind it.
//! x: any 300
//! y: zeros 192
//! a: 0, 5, 5, -1, 170, 175
//! b: 0, -2, 3, 7, -1, 175
//! c: 0, 3, -9, 7, 5, 0
fn kernel(x: Ptr<i32>, y: PtrMut<i32>, a: usize, b: usize, c: usize) {
    let lanes = arange(0, 64);
    store(y + 3 * lanes, load(x + a + 2 * lanes, other = 1));
    store(y + 1 + 3 * lanes, load(x + b + 2 * lanes, other = 2));
    store(y + 2 + 3 * lanes, load(x + c + 2 * lanes, other = 3));
}

fn reference(x: Ptr<i32>, y: PtrMut<i32>, a: usize, b: usize, c: usize) {
    for i in 0..64 {
        store(y + 3 * i, if a + 2 * i >= 0 && a + 2 * i < 300 { load(x + a + 2 * i) } else { 1 });
        store(y + 1 + 3 * i, if b + 2 * i >= 0 && b + 2 * i < 300 { load(x + b + 2 * i) } else { 2 });
        store(y + 2 + 3 * i, if c + 2 * i >= 0 && c + 2 * i < 300 { load(x + c + 2 * i) } else { 3 });
    }
}
