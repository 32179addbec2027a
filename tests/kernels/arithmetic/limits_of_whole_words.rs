//! Limits whose low 32 bits are zero: a comparison may look at the high word alone, in both signs, and where the low word is the largest or the smallest.
//! y: zeros 11
//! n: 0, -1, 1099511627775, 1099511627776, 1099511627777, -1099511627776, -1099511627777, -1099511627775, 4611686018427387903, 4611686018427387904, -9223372036854775808, 9223372036854775807, 4294967295, 4294967296
fn kernel(y: PtrMut<i32>, n: usize) {
    store(y, (n < 0x100_0000_0000) as i32);
    store(y + 1, (n >= 0x100_0000_0000) as i32);
    store(y + 2, (n < -0x100_0000_0000) as i32);
    store(y + 3, (n >= -0x100_0000_0000) as i32);
    store(y + 4, (n <= 0x100_0000_0000) as i32);
    store(y + 5, (n > -0x100_0000_0000) as i32);
    store(y + 6, ((n as u64) < 0x4000_0000_0000_0000) as i32);
    store(y + 7, ((n as u64) >= 0x8000_0000_0000_0000) as i32);
    store(y + 9, (n < 0x100_0000_0001) as i32);
    store(y + 10, (n >= 0xff_ffff_ffff) as i32);
    store(y + 8, ((n as u64) < 0x1_0000_0000) as i32);
}
