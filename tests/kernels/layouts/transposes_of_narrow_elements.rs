//! Signed elements of 8 and 16 bits change lanes, several in a word, and are widened behind that; a mask leaves a part of the tile only.
//! x: any 512
//! w: any 512
//! y: zeros 512
//! z: zeros 512
//! n: 1, 100, 131
//! warps: 1
fn kernel(x: Ptr<i8>, w: Ptr<i16>, y: PtrMut<i32>, z: PtrMut<i32>, n: usize) {
    let (i, j) = (arange(0, 4).col(), arange(0, 128).row());
    let mask = i + j < n;
    store(y + 4 * j + i, load(x + 128 * i + j, mask = mask) as i32, mask = mask);
    store(z + 4 * j + i, load(w + 128 * i + j, mask = mask) as i32, mask = mask);
}

fn reference(x: Ptr<i8>, w: Ptr<i16>, y: PtrMut<i32>, z: PtrMut<i32>, n: usize) {
    for i in 0..4 {
        for j in 0..128 {
            if i + j < n {
                store(y + 4 * j + i, load(x + 128 * i + j) as i32);
                store(z + 4 * j + i, load(w + 128 * i + j) as i32);
            }
        }
    }
}
