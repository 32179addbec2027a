//! A product of arguments wraps to 0 modulo 2^64. Half of twice the product is then another index than the product.
//! x: counting 1024
//! y: zeros 512
//! a: 1, 4294967296, 3037000500, 2147483648
//! b: 0, 2147483648, 0, 4294967296
fn kernel(x: Ptr<i32>, y: PtrMut<i32>, a: i64, b: i64) {
    let i = a * b + arange(0, 256);
    store(y + arange(0, 256), load(x + 2 * i) + 2 * load(x + 2 * i + 1));
}

fn reference(x: Ptr<i32>, y: PtrMut<i32>, a: i64, b: i64) {
    for i in 0..256 {
        let k = 2 * (a * b + i);
        store(y + i, load(x + k) + 2 * load(x + k + 1));
    }
}
