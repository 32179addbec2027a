//! A loop updates a tensor in place from an aligned position on. The next loop loads the same elements, and begins at its own aligned position.
//! y: any 3000
//! z: zeros 3000
//! n: 256, 1024, 1037, 5
//! start: 1, 1, 3, 2
//! warps: 8
fn kernel(y: PtrMut<i16>, z: PtrMut<i16>, n: usize, start: usize) {
    let column = arange(0, 256);
    for first in range(0, n, 256) {
        let at = first + column;
        store(y + start + at, load(y + start + at, mask = at < n) * 3 + 1, mask = at < n);
    }
    for first in range(0, n, 256) {
        let at = first + column;
        store(z + at, load(y + start + at, mask = at < n), mask = at < n);
    }
}

fn reference(y: PtrMut<i16>, z: PtrMut<i16>, n: usize, start: usize) {
    for at in 0..n {
        let v = load(y + start + at) * 3 + 1;
        store(y + start + at, v);
        store(z + at, v);
    }
}
