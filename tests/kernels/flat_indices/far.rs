//! Arguments beyond 32 bits, zeros and negative ones: the indices are computed in 64 bits.
//! x: any 1024
//! y: zeros 1024
//! first: 0, 4294967296, 2147483647, 9223372036854774784, -1024, 2147482624, 0, 0, 0
//! d: 64, 64, 48, 128, 64, 32, 0, -64, 4294967360
fn kernel(x: Ptr<i32>, y: PtrMut<i32>, first: usize, d: usize) {
    let i = arange(0, 1024);
    let o = first + i;
    store(y + i, load(x + o % d) + (o / d) as i32);
}

fn reference(x: Ptr<i32>, y: PtrMut<i32>, first: usize, d: usize) {
    for i in 0..1024 {
        let o = first + i;
        store(y + i, load(x + o % d) + (o / d) as i32);
    }
}
