//! Loop bounds lie more than 31 bits apart, and `index + step` overflows after the last iteration.
//! y: zeros 64
//! low: 2147483000, -2147483648, -2147483648, 0
//! high: 2147483647, 2147483647, 0, 2147483647
//! by: 100, 1000000000, 700000000, 2147483647
fn kernel(y: PtrMut<i32>, low: i32, high: i32, by: i32) {
    let mut count: i32 = 0;
    for i in range(low, high, by) {
        store(y + count as usize, i);
        count += 1;
    }
    store(y + 63, count);
}

fn reference(y: PtrMut<i32>, low: i32, high: i32, by: i32) {
    let mut i = low as i64;
    let mut count: i32 = 0;
    while i < high as i64 {
        store(y + count as usize, i as i32);
        count += 1;
        i += by as i64;
    }
    store(y + 63, count);
}
