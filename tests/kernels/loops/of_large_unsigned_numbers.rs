//! Loops over unsigned numbers of 32 bits, the bounds of which would be negative as signed ones.
//! y: zeros 16
//! first: 0, 2147483640, 4294967280, 2147483648
//! end: 9, 2147483655, 4294967295, 2147483650
fn kernel(y: PtrMut<i64>, first: u32, end: u32) {
    for i in first..end {
        store(y + (i as i64 - first as i64), i as i64 + 1);
    }
}

fn reference(y: PtrMut<i64>, first: u32, end: u32) {
    let start = first as i64;
    for i in 0..end as i64 - start {
        store(y + i, start + i + 1);
    }
}
