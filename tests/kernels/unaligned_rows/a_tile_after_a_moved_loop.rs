//! A loop updates a tensor in place from an aligned position on. Then a tile loads what the first iteration has stored.
//! y: any 3000
//! z: zeros 300
//! n: 256, 1024, 1037, 5
//! start: 1, 1, 3, 2
//! warps: 8
fn kernel(y: PtrMut<i32>, z: PtrMut<i32>, n: usize, start: usize) {
    let column = arange(0, 256);
    for first in range(0, n, 256) {
        let at = first + column;
        store(y + start + at, load(y + start + at, mask = at < n) * 3 + 1, mask = at < n);
    }
    store(z + column, load(y + start + column, mask = column < n), mask = column < n);
}

fn reference(y: PtrMut<i32>, z: PtrMut<i32>, n: usize, start: usize) {
    for at in 0..n {
        let v = load(y + start + at) * 3 + 1;
        store(y + start + at, v);
        if at < 256 { store(z + at, v); }
    }
}
