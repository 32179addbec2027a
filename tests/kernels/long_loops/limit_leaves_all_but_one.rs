//! A loop over blocks of a row, of which the last one lacks one element, or all; the loop's step is a power of two, or not.
//! x: whole 1000
//! y: zeros 4
//! a: 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 0, 1, 2, 3, 950
//! n: 511, 511, 511, 511, 479, 479, 479, 479, 256, 256, 256, 256, 0, 33, 33, 33, 33, 100
fn kernel(x: Ptr<i32>, y: PtrMut<i32>, a: usize, n: usize) {
    let mut total = zeros::<i32>([256]);
    for i in range(0, n, 256) {
        let at = i + arange(0, 256);
        total += load(x + a + at, mask = at < n);
    }
    store(y, sum(total));
    let mut other = zeros::<i32>([256]);
    for i in range(0, n, 96) {
        let at = i + arange(0, 256);
        other += load(x + a + at, mask = at <= n, other = 1);
    }
    store(y + 1, sum(other));
    let mut third = zeros::<i32>([128]);
    for i in range(5, n, 3) {
        third += load(x + a + i + arange(0, 128));
    }
    store(y + 2, sum(third));
}

fn reference(x: Ptr<i32>, y: PtrMut<i32>, a: usize, n: usize) {
    let (mut total, mut other, mut third) = (0 as i32, 0 as i32, 0 as i32);
    for i in 0..n {
        total = total + load(x + a + i);
    }
    for i in range(0, n, 96) {
        for j in 0..256 {
            other = other + if i + j <= n { load(x + a + i + j, other = 1) } else { 1 };
        }
    }
    for i in range(5, n, 3) {
        for j in 0..128 {
            third = third + load(x + a + i + j);
        }
    }
    store(y, total);
    store(y + 1, other);
    store(y + 2, third);
}
