//! A mask of rows and one of columns, each of a limit and of something else that is no limit; the tile ends inside its tensor or outside.
//! x: any 700
//! y: zeros 700
//! z: zeros 700
//! m: 9, 16, 11, 0, 30
//! n: 13, 32, 40, 5, 3
//! s: 33, 41, 50, 40, 35
fn kernel(x: Ptr<i32>, y: PtrMut<i32>, z: PtrMut<i32>, m: usize, n: usize, s: usize) {
    let (i, j) = (arange(0, 16), arange(0, 32));
    let at = i.col() * s + j.row();
    let v = load(x + at);
    store(y + at, v, mask = ((i != 2) & (i < m)).col() & ((j < n) & (j != 7)).row());
    store(z + at, v, mask = ((i < m) & (i != 3)).col() & ((j != 5) & (j < n)).row());
}

fn reference(x: Ptr<i32>, y: PtrMut<i32>, z: PtrMut<i32>, m: usize, n: usize, s: usize) {
    for i in 0..min(m, 16) {
        for j in 0..min(n, 32) {
            let v = load(x + i * s + j);
            if i != 2 && j != 7 {
                store(y + i * s + j, v);
            }
            if i != 3 && j != 5 {
                store(z + i * s + j, v);
            }
        }
    }
}
