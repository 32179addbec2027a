//! Loaded numbers of 32 and of 8 bits, and few of 64, are divided by an argument: by its reciprocal, with the signs of both numbers.
//! x: any 512
//! k: any 512
//! w: any 128
//! y: zeros 1024
//! z: zeros 1024
//! v: zeros 256
//! d: 1, -1, 2, 3, -7, 0, 641, 65537, 2147483647, -2147483648, -2147483647
fn kernel(x: Ptr<i32>, k: Ptr<i8>, w: Ptr<i64>, y: PtrMut<i32>, z: PtrMut<i8>, v: PtrMut<i64>, d: i32) {
    let i = arange(0, 512);
    let n = load(x + i);
    store(y + i, n / d);
    store(y + i + 512, n % d);
    let n = load(k + i);
    store(z + i, n / d as i8);
    store(z + i + 512, n % d as i8);
    let i = arange(0, 128);
    let (n, m) = (load(w + i), d as i64 * 3);
    store(v + i, n / m);
    store(v + i + 128, n % m);
}

fn reference(x: Ptr<i32>, k: Ptr<i8>, w: Ptr<i64>, y: PtrMut<i32>, z: PtrMut<i8>, v: PtrMut<i64>, d: i32) {
    for i in 0..512 {
        let n = load(x + i);
        store(y + i, n / d);
        store(y + i + 512, n % d);
        let n = load(k + i);
        store(z + i, n / d as i8);
        store(z + i + 512, n % d as i8);
    }
    for i in 0..128 {
        let n = load(w + i);
        store(v + i, n / (d as i64 * 3));
        store(v + i + 128, n % (d as i64 * 3));
    }
}
