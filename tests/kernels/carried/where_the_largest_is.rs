//! A loop carries where it found the largest values, with indices on both sides of the ends of 32 bits.
//! x: any 6400
//! y: zeros 128
//! z: zeros 128
//! first: 0, 2147483600, 2147483647, 4294967290, -2147483660, -5
//! n: 50, 48, 50, 20, 50, 0
fn kernel(x: Ptr<f32>, y: PtrMut<i64>, z: PtrMut<i64>, first: i64, n: i64) {
    let column = arange(0, 128);
    let mut best = full::<f32>([128], f32::NEG_INFINITY);
    let mut at = full::<i64>([128], first - 1);
    let mut element = full::<i64>([128], -7);
    for row in range(first, first + n) {
        let v = load(x + (row - first) * 128 + column);
        at = select(v > best, row, at);
        element = select(v > best, row + column, element);
        best = max(best, v);
    }
    store(y + column, at);
    store(z + column, element);
}

fn reference(x: Ptr<f32>, y: PtrMut<i64>, z: PtrMut<i64>, first: i64, n: i64) {
    for column in 0..128 {
        let mut best = f32::NEG_INFINITY;
        let mut at = first - 1;
        let mut element = -7i64;
        for row in 0..n {
            let v = load(x + row * 128 + column);
            if v > best {
                best = v;
                at = first + row;
                element = first + row + column;
            }
        }
        store(y + column, at);
        store(z + column, element);
    }
}
