//! Rows whose distance is an argument: the first one is aligned as wide accesses are, the next ones may not be.
//! y: whole 2000
//! a: 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 1500
//! s: 65, 65, 65, 65, 66, 66, 66, 66, 64, 64, 64, 64, 67
fn kernel(y: PtrMut<i32>, a: usize, s: usize) {
    let at = a + arange(0, 16).col() * s + arange(0, 64).row();
    store(y + at, load(y + at) + 3);
}

fn reference(y: PtrMut<i32>, a: usize, s: usize) {
    for i in 0..16 {
        for j in 0..64 {
            let at = a + i * s + j;
            store(y + at, load(y + at) + 3);
        }
    }
}
