//! Every iteration loads the tile that the one before has stored at the same index, in another layout where both tensors are aligned.
//! x: any 1040
//! w: any 1040
//! y: whole 1040
//! z: zeros 4096
//! n: 2
//! s: 0, 0, 0, 0, 4, 4, 4, 4, 5, 5, 5, 5, 6, 6, 6, 6, 7, 7, 7, 7
//! t: 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3
fn kernel(x: Ptr<u16>, w: Ptr<u16>, y: PtrMut<i32>, z: PtrMut<i32>, n: usize, s: usize, t: usize) {
    let lanes = arange(0, 1024);
    for i in range(0, n, 1, num_stages = 1) {
        store(z + i * 2048 + 2 * lanes, load(y + t + lanes));
        store(y + t + lanes, load(x + s + lanes) as i32 + load(w + s + lanes) as i32 + i as i32);
    }
}

fn reference(x: Ptr<u16>, w: Ptr<u16>, y: PtrMut<i32>, z: PtrMut<i32>, n: usize, s: usize, t: usize) {
    for i in 0..n {
        for j in 0..1024 {
            store(z + i * 2048 + 2 * j, load(y + t + j));
            store(y + t + j, load(x + s + j) as i32 + load(w + s + j) as i32 + i as i32);
        }
    }
}
