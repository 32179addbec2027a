//! A comparison that is assumed with its sides in one order and asked for in the other.
//! y: zeros 6
//! a: 9, 100
//! b: 4, 99
fn kernel(y: PtrMut<i32>, a: usize, b: usize) {
    assume(b < a);
    store(y, (a > b) as i32);
    store(y + 1, (a >= b) as i32);
    store(y + 2, (a < b) as i32);
    store(y + 3, (b < a) as i32);
    store(y + 4, (b >= a) as i32);
    store(y + 5, (b == a) as i32);
}

fn reference(y: PtrMut<i32>, a: usize, b: usize) {
    store(y, 1);
    store(y + 1, 1);
    store(y + 2, 0);
    store(y + 3, 1);
    store(y + 4, 0);
    store(y + 5, 0);
}
