//! A permutation of a permutation of three axes: which of the two comes first matters.
//! x: counting 64
//! y: zeros 128
fn kernel(x: Ptr<i32>, y: PtrMut<i32>) {
    let lanes = arange(0, 64);
    let v = load(x + lanes);
    let slab = permute(reshape(v, [2, 4, 8]), [1, 2, 0]);
    store(y + lanes, reshape(permute(slab, [1, 0, 2]), [64]));
    let cube = permute(reshape(v, [4, 4, 4]), [1, 2, 0]);
    store(y + 64 + lanes, reshape(permute(cube, [1, 0, 2]), [64]));
}

fn reference(x: Ptr<i32>, y: PtrMut<i32>) {
    for i in 0..2 {
        for j in 0..4 {
            for k in 0..8 {
                store(y + (k * 4 + j) * 2 + i, load(x + (i * 4 + j) * 8 + k));
            }
        }
    }
    for i in 0..4 {
        for j in 0..4 {
            for k in 0..4 {
                store(y + 64 + (k * 4 + j) * 4 + i, load(x + (i * 4 + j) * 4 + k));
            }
        }
    }
}
