//! A loop selects numbers that it loads, and an index that it also compares.
//! x: any 6400
//! ids: any 50
//! y: zeros 128
//! z: zeros 128
//! n: 50, 1, 0
fn kernel(x: Ptr<f32>, ids: Ptr<i64>, y: PtrMut<i64>, z: PtrMut<i64>, n: usize) {
    let column = arange(0, 128);
    let mut best = full::<f32>([128], f32::NEG_INFINITY);
    let mut id = zeros::<i64>([128]);
    let mut at = zeros::<i64>([128]);
    let mut late = zeros::<i64>([128]);
    for row in 0..n {
        let v = load(x + row * 128 + column);
        id = select(v > best, load(ids + row), id);
        at = select(v > best, row, at);
        late += select(at + 3 < row, 1i64, 0i64);
        best = max(best, v);
    }
    store(y + column, id);
    store(z + column, at * 1000 + late);
}

fn reference(x: Ptr<f32>, ids: Ptr<i64>, y: PtrMut<i64>, z: PtrMut<i64>, n: usize) {
    for column in 0..128 {
        let mut best = f32::NEG_INFINITY;
        let mut id = 0i64;
        let mut at = 0i64;
        let mut late = 0i64;
        for row in 0..n {
            let v = load(x + row * 128 + column);
            if v > best {
                best = v;
                id = load(ids + row);
                at = row;
            }
            if at + 3 < row {
                late += 1;
            }
        }
        store(y + column, id);
        store(z + column, at * 1000 + late);
    }
}
