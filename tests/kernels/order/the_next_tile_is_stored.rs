//! Each iteration loads a tile that the one before has stored, in another layout where both tensors are aligned.
//! x: any 1040
//! w: any 1040
//! y: whole 4100
//! z: zeros 6144
//! n: 3
//! s: 0, 0, 0, 0, 4, 4, 4, 4, 5, 5, 5, 5, 6, 6, 6, 6, 7, 7, 7, 7
//! t: 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3
fn kernel(x: Ptr<u16>, w: Ptr<u16>, y: PtrMut<i32>, z: PtrMut<i32>, n: usize, s: usize, t: usize) {
    let lanes = arange(0, 1024);
    for i in range(0, n, 1, num_stages = 1) {
        store(z + i * 2048 + 2 * lanes, load(y + t + i * 1024 + lanes));
        store(y + t + (i + 1) * 1024 + lanes, load(x + s + lanes) as i32 + load(w + s + lanes) as i32);
    }
}

fn reference(x: Ptr<u16>, w: Ptr<u16>, y: PtrMut<i32>, z: PtrMut<i32>, n: usize, s: usize, t: usize) {
    for i in 0..n {
        for j in 0..1024 {
            store(z + i * 2048 + 2 * j, load(y + t + i * 1024 + j));
            store(y + t + (i + 1) * 1024 + j, load(x + s + j) as i32 + load(w + s + j) as i32);
        }
    }
}
