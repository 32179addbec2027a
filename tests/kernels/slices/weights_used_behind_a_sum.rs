//! A row and its weights fill so many registers that both loads are issued in front of the sum.
//! x: any 2048
//! w: any 2048
//! y: zeros 2048
//! n: 0, 3, 2, 512, 1024, 2000, 2040, 2042, 2044, 2046, 2048
fn kernel(x: Ptr<i64>, w: Ptr<i64>, y: PtrMut<i64>, n: usize) {
    let column = arange(0, 2048);
    let mask = column < n;
    let row = load(x + column, mask = mask);
    let weight = load(w + column, mask = mask);
    let v = row % 1000;
    let total = sum(v);
    store(y + column, (v + total) * weight, mask = mask);
}

fn reference(x: Ptr<i64>, w: Ptr<i64>, y: PtrMut<i64>, n: usize) {
    let mut total: i64 = 0;
    for i in 0..n {
        total += load(x + i) % 1000;
    }
    for i in 0..n {
        store(y + i, (load(x + i) % 1000 + total) * load(w + i));
    }
}
