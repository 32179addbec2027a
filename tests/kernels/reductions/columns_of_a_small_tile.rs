//! Reductions of a tile with fewer elements than a warp has lanes, in the order of the rows: lanes hold copies of the whole tile, and share the results.
//! x: any 16
//! y: zeros 4
//! z: zeros 4
//! a: zeros 4
fn kernel(x: Ptr<i32>, y: PtrMut<i32>, z: PtrMut<i32>, a: PtrMut<i64>) {
    let column = arange(0, 4);
    let v = load(x + 4 * arange(0, 4).col() + column.row());
    let (factor, term) = reduce((v * 2 + 1, v * v), 0, |p, q| (p.0 * q.0, p.1 * q.0 + q.1));
    store(y + column, factor);
    store(z + column, term);
    store(a + column, sum(v as i64, axis = 1));
}

fn reference(x: Ptr<i32>, y: PtrMut<i32>, z: PtrMut<i32>, a: PtrMut<i64>) {
    for i in 0..4 {
        let (mut factor, mut term, mut total) = (1i32, 0i32, 0i64);
        for j in 0..4 {
            let v = load(x + 4 * j + i);
            factor = factor * (v * 2 + 1);
            term = term * (v * 2 + 1) + v * v;
            total += load(x + 4 * i + j) as i64;
        }
        store(y + i, factor);
        store(z + i, term);
        store(a + i, total);
    }
}
