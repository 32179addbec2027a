//! Twice a large index wraps to a small one, so half of the doubled index is another index.
//! x: counting 1024
//! y: zeros 1024
//! far: 0, 9223372036854775807, -9223372036854775808, 4611686018427387904, -100
//! near: 0, 1, 0, 0, 100
fn kernel(x: Ptr<i32>, y: PtrMut<i32>, far: i64, near: i64) {
    let i = arange(0, 256) + far + near;
    store(y + 2 * i, load(x + 2 * i + 1));
    store(y + 2 * i + 1, load(x + 2 * i));
}

fn reference(x: Ptr<i32>, y: PtrMut<i32>, far: i64, near: i64) {
    let k = 2 * (far + near);
    for i in 0..256 {
        store(y + k + 2 * i, load(x + k + 2 * i + 1));
        store(y + k + 2 * i + 1, load(x + k + 2 * i));
    }
}
