//! Reductions of columns, of which lanes share the results: a sum, the index of the largest element, and steps `v * a + b` that do not commute.
//! x: any 2048
//! y: zeros 64
//! z: zeros 64
//! a: zeros 64
//! b: zeros 64
fn kernel(x: Ptr<i32>, y: PtrMut<i32>, z: PtrMut<i64>, a: PtrMut<i32>, b: PtrMut<i32>) {
    let column = arange(0, 64);
    let v = load(x + 64 * arange(0, 32).col() + column.row());
    store(y + column, sum(v, axis = 0));
    store(z + column, argmax(v, axis = 0));
    let (factor, term) = reduce((v * 2 + 1, v * v), 0, |p, q| (p.0 * q.0, p.1 * q.0 + q.1));
    store(a + column, factor);
    store(b + column, term);
}

fn reference(x: Ptr<i32>, y: PtrMut<i32>, z: PtrMut<i64>, a: PtrMut<i32>, b: PtrMut<i32>) {
    for column in 0..64 {
        let (mut total, mut best, mut index, mut factor, mut term) = (0i32, load(x + column), 0i64, 1i32, 0i32);
        for row in 0..32 {
            let v = load(x + 64 * row + column);
            total += v;
            index = select(v > best, row, index);
            best = max(best, v);
            factor = factor * (v * 2 + 1);
            term = term * (v * 2 + 1) + v * v;
        }
        store(y + column, total);
        store(z + column, index);
        store(a + column, factor);
        store(b + column, term);
    }
}
