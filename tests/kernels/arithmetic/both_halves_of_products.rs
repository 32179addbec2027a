//! Both halves of products of 32-bit integers: of elements, of elements and a number, and of numbers alone, the high half first or last.
//! Then products of which a branch computes the other half.
//! x: any 1024
//! z: any 1024
//! y: zeros 6144
//! k: -845247145, 0, 1, -1, 2147483647
fn kernel(x: Ptr<i32>, z: Ptr<i32>, y: PtrMut<u32>, k: i64) {
    let lanes = arange(0, 1024);
    let a = load(x + lanes) as u32;
    let b = load(z + lanes) as u32;
    let m = k as u32;
    store(y + lanes, umulhi(a, b) ^ (b * a) << 1);
    store(y + 1024 + lanes, (a * m) - umulhi(a, m));
    store(y + 2048 + lanes, a + umulhi(m, m) ^ (m * m) << 3);
    let high = umulhi(b, m);
    let mut low = b;
    if k > 0 {
        low = b * m;
    }
    store(y + 3072 + lanes, high ^ low << 1);
    let signed = load(x + lanes);
    store(y + 4096 + lanes, (signed / 7 ^ signed * -1840700269) as u32);
    store(y + 5120 + lanes, umulhi(a, a));
}

fn reference(x: Ptr<i32>, z: Ptr<i32>, y: PtrMut<u32>, k: i64) {
    let m = k as u32 as u64;
    for i in 0..1024 {
        let a = load(x + i) as u32 as u64;
        let b = load(z + i) as u32 as u64;
        store(y + i, (a * b >> 32) as u32 ^ ((a * b) as u32) << 1);
        store(y + 1024 + i, (a * m) as u32 - (a * m >> 32) as u32);
        store(y + 2048 + i, a as u32 + (m * m >> 32) as u32 ^ ((m * m) as u32) << 3);
        let mut low = b as u32;
        if k > 0 {
            low = (b * m) as u32;
        }
        store(y + 3072 + i, (b * m >> 32) as u32 ^ low << 1);
        let signed = load(x + i);
        store(y + 4096 + i, (signed / 7) as u32 ^ (signed as i64 * -1840700269) as u32);
        store(y + 5120 + i, (a * a >> 32) as u32);
    }
}
