//! Masks that keep the element at their end, of positions and of indices. The last elements are out of bounds.
//! x: whole 1500
//! y: zeros 2048
//! a: 0, 1, 600, 1000, 1000, 1400, -300, 3
//! n: 700, -1, 0, 9223372036854775807, 1023, -9223372036854775808, 1000, 1499
fn kernel(x: Ptr<f32>, y: PtrMut<f32>, a: usize, n: usize) {
    let column = arange(0, 1024);
    store(y + column, load(x + a + column, mask = column <= n, other = 3.0));
    store(y + 1024 + column, load(x + (a + column), mask = a + column <= n, other = 3.0));
}

fn reference(x: Ptr<f32>, y: PtrMut<f32>, a: usize, n: usize) {
    for j in 0..1024 {
        store(y + j, load(x + a + j, mask = j <= n, other = 3.0));
        store(y + 1024 + j, load(x + (a + j), mask = a + j <= n, other = 3.0));
    }
}
