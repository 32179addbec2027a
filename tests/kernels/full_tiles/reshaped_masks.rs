//! A mask is loaded and then reshaped or flipped. Its axes do not tell which of its elements belongs to which element of the access.
//! m: whole 300
//! y: zeros 600
//! a: 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 60
//! b: 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 60
fn kernel(m: Ptr<i32>, y: PtrMut<i32>, a: usize, b: usize) {
    let mask = load(m + a + arange(0, 256)) > 0;
    let at = arange(0, 8).col() * 32 + arange(0, 32).row();
    store(y + b + at, full::<i32>([8, 32], 3), mask = reshape(mask, [8, 32]));
    store(y + 280 + b + arange(0, 256), full::<i32>([256], 4), mask = flip(mask));
}

fn reference(m: Ptr<i32>, y: PtrMut<i32>, a: usize, b: usize) {
    for i in 0..256 {
        if load(m + a + i) > 0 {
            store(y + b + i, 3);
            store(y + 280 + b + 255 - i, 4);
        }
    }
}
