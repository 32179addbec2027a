//! A row and its weights fill so many registers that both loads are issued in front of the sum; the elements have 64 and 8 bits.
//! x: any 4096
//! w: any 4096
//! y: zeros 4096
//! n: 0, 3, 4000, 4096
fn kernel(x: Ptr<i64>, w: Ptr<i8>, y: PtrMut<i64>, n: usize) {
    let column = arange(0, 4096);
    let mask = column < n;
    let row = load(x + column, mask = mask);
    let weight = load(w + column, mask = mask);
    let v = row % 1000;
    let total = sum(v);
    store(y + column, (v + total) * weight as i64, mask = mask);
}

fn reference(x: Ptr<i64>, w: Ptr<i8>, y: PtrMut<i64>, n: usize) {
    let mut total: i64 = 0;
    for i in 0..n {
        total += load(x + i) % 1000;
    }
    for i in 0..n {
        store(y + i, (load(x + i) % 1000 + total) * load(w + i) as i64);
    }
}
