//! The last position is the largest number of 31 bits: a limit behind it must stay behind it, also where another mask leaves out the first element.
//! y: zeros 4
//! n: 2147483648, 2147483647, 0, -1, 1, 47, 48, 2147483601, 2147483649, 4294967296, 9223372036854775807, -9223372036854775808
//! k: 1, 1, 1, 1, 0, 0, 0, 2, 2, 1, 1, 1
fn kernel(y: PtrMut<i32>, n: usize, k: usize) {
    let (i, j) = (arange(0, 2).col(), arange(0, 2).row());
    store(y + i * 2 + j, 1 + (i * 2 + j) as i32, mask = (i * 2147483600 + j * 47 < n) & (i + j >= k));
}

fn reference(y: PtrMut<i32>, n: usize, k: usize) {
    for i in 0..2 {
        for j in 0..2 {
            if i * 2147483600 + j * 47 < n && i + j >= k {
                store(y + i * 2 + j, 1 + (i * 2 + j) as i32);
            }
        }
    }
}
