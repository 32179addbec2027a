//! The stride wraps around: every 128th element of the tile is the first element of the tensor, and the others are out of bounds. The tile is loaded before it is stored.
//! x: any 2400
//! s: 1, 144115188075855872
fn kernel(x: PtrMut<i32>, s: usize) {
    let lanes = arange(0, 2048);
    store(x + s * lanes, load(x + s * lanes) + 1);
}

fn reference(x: PtrMut<i32>, s: usize) {
    for i in 0..if s == 1 { 2048 } else { 1 } {
        store(x + i, load(x + i) + 1);
    }
}
