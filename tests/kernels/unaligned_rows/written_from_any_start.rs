//! Each position is computed on its own, so that a loop may begin where its output is aligned. One tensor is updated in place.
//! x: any 4000
//! w: any 40
//! y: any 4000
//! z: any 4000
//! grid: 3
//! n: 1000, 1037, 1, 3, 7, 1037, 700, 1037, 1000
//! first: 0, 0, 0, 0, 2, 5, 701, 0, 9223372036854775805
//! run: 100, 29, 1, 2, 3, 1000, 300, 5000, 100
//! start: 0, 0, 1, 0, 3, 13, 5, 7, 0
fn kernel(x: Ptr<i16>, w: Ptr<i16>, y: PtrMut<i16>, z: PtrMut<i32>, n: usize, first: usize, run: usize, start: usize) {
    let row = start + program_id(0) * n;
    for from in range(first, n, 256) {
        let at = from + arange(0, 256);
        let mask = at < n;
        let v = load(x + row + at, mask = mask) * load(w + at / run, mask = mask);
        let before = load(y + row + at, mask = mask);
        store(y + row + at, v + before, mask = mask);
        store(z + row + at, (v as i32) - (at as i32), mask = mask & (v > before));
    }
}

fn reference(x: Ptr<i16>, w: Ptr<i16>, y: PtrMut<i16>, z: PtrMut<i32>, n: usize, first: usize, run: usize, start: usize) {
    let row = start + program_id(0) * n;
    for at in first..n {
        let v = load(x + row + at) * load(w + at / run);
        let before = load(y + row + at);
        store(y + row + at, v + before);
        if v > before {
            store(z + row + at, (v as i32) - (at as i32));
        }
    }
}
