//! A three-dimensional tile is the broadcast sum of three vectors and is stored with its axes permuted. The layout of the store propagates to its operands.
//! x: any 64
//! y: zeros 8192
fn kernel(x: Ptr<i32>, y: PtrMut<i32>) {
    let i = reshape(load(x + arange(0, 16)), [16, 1, 1]);
    let j = reshape(load(x + arange(0, 8)), [1, 8, 1]);
    let k = reshape(load(x + arange(0, 64)), [1, 1, 64]);
    let v = i * 3 + j * 5 + k;
    let out = reshape(arange(0, 8), [8, 1, 1]) * 1024 + reshape(arange(0, 64), [1, 64, 1]) * 16 + reshape(arange(0, 16), [1, 1, 16]);
    store(y + out, permute(v, [1, 2, 0]));
}

fn reference(x: Ptr<i32>, y: PtrMut<i32>) {
    for i in 0..16 {
        for j in 0..8 {
            for k in 0..64 {
                store(y + j * 1024 + k * 16 + i, load(x + i) * 3 + load(x + j) * 5 + load(x + k));
            }
        }
    }
}
