//! Each element is divided by a scalar, from small indices and from the largest of 31 bits on: the reciprocals of many divisors.
//! y: zeros 1024
//! z: zeros 1024
//! d: 1, 2, 3, 5, 7, 8, 9, 11, 13, 641, 1000, 4095, 4096, 4097, 65535, 65537, 99991, 1048576, 16777215, 16777217, 1073741823, 1073741824, 1073741825, 2147483647, 2147483646, 715827883, 1431655765, 1073741827, 7, 7, 26, 25, 104, 179, 485, 864, 1518, 2673, 7558, 8687, 953, 55076, 61033, 203415, 494593, 261153, 1361001, 217491, 7557304, 2631531, 3798564, 24950632, 62957384, 233121555, 132377784, 408835702
fn kernel(y: PtrMut<i64>, z: PtrMut<i64>, d: usize) {
    let i = arange(0, 1024);
    let near = i * 2 + 1;
    store(y + i, near % 9 + near / d + near % d * 3);
    let far = 2147482624 + (i % 8 * 128 + i / 8) % 1024;
    store(z + i, far / d + far % d * 3);
}

fn reference(y: PtrMut<i64>, z: PtrMut<i64>, d: usize) {
    for i in 0..1024 {
        let near = i * 2 + 1;
        store(y + i, near % 9 + near / d + near % d * 3);
        let far = 2147482624 + (i % 8 * 128 + i / 8) % 1024;
        store(z + i, far / d + far % d * 3);
    }
}
