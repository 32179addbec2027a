//! Rows of a tile whose distance is known and is no multiple of a wide access, though each of them is long enough for several.
//! y: whole 600
//! s: 0, 1, 2, 3, 200
fn kernel(y: PtrMut<i32>, s: usize) {
    let at = s + arange(0, 8).col() * 66 + arange(0, 64).row();
    store(y + at, load(y + at) + 3);
}

fn reference(y: PtrMut<i32>, s: usize) {
    for i in 0..8 {
        for j in 0..64 {
            store(y + s + 66 * i + j, load(y + s + 66 * i + j) + 3);
        }
    }
}
