//! The first element of a tensor is stored behind the load of a tile that begins with it; the tile is cut by its mask.
//! x: any 2048
//! y: zeros 2048
//! n: 0, 1, 1200, 2047
fn kernel(x: PtrMut<i32>, y: PtrMut<i32>, n: usize) {
    let lanes = arange(0, 2048);
    let mask = lanes < n;
    let tile = load(x + lanes, mask = mask);
    store(x, 7);
    store(y + lanes, tile + 1, mask = mask);
}

fn reference(x: PtrMut<i32>, y: PtrMut<i32>, n: usize) {
    for i in 0..n {
        store(y + i, load(x + i) + 1);
    }
    store(x, 7);
}
