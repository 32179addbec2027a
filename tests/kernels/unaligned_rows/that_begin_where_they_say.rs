//! Loops whose results would differ if they began elsewhere: one stores where its blocks begin, one stores positions in a block, one writes beyond its own end, one reads what
//! an earlier block has written, and one stores twice to a tensor.
//! x: any 4000
//! blocks: zeros 4000
//! lanes: zeros 6000
//! beyond: zeros 6000
//! moved: any 6000
//! twice: zeros 6000
//! n: 1037, 1001
fn kernel(x: Ptr<i16>, blocks: PtrMut<i16>, lanes: PtrMut<i64>, beyond: PtrMut<i16>, moved: PtrMut<i16>, twice: PtrMut<i16>, n: usize) {
    let row = 3 * n;
    for from in range(0, n, 256) {
        let at = from + arange(0, 256);
        store(blocks + row - 2 * n + at, full([256], from as i16), mask = at < n);
    }
    for from in range(0, n, 256) {
        let at = from + arange(0, 256);
        store(lanes + row + at, arange(0, 256), mask = at < n);
    }
    for from in range(0, n, 256) {
        let at = from + arange(0, 256);
        store(beyond + row + at, load(x + row - 2 * n + at, mask = at < n + 200), mask = at < n + 200);
    }
    for from in range(0, n, 256) {
        let at = from + arange(0, 256);
        store(moved + row + at, load(moved + row + at - 256, mask = at < n), mask = at < n);
    }
    for from in range(0, n, 256) {
        let at = from + arange(0, 256);
        store(twice + row + at, load(x + at, mask = at < n), mask = at < n);
        store(twice + row + at - 256, full([256], 7i16), mask = at < n);
    }
}
