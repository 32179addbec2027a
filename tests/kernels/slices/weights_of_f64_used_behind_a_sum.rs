//! A row and its weights fill so many registers that both loads are issued in front of the sum; they have elements of f64.
//! x: whole 2048
//! w: whole 2048
//! y: zeros 2048
//! n: 0, 3, 2000, 2048
fn kernel(x: Ptr<f64>, w: Ptr<f64>, y: PtrMut<f64>, n: usize) {
    let column = arange(0, 2048);
    let mask = column < n;
    let v = load(x + column, mask = mask);
    let weight = load(w + column, mask = mask);
    let total = sum(v);
    store(y + column, (v + total) * weight, mask = mask);
}

fn reference(x: Ptr<f64>, w: Ptr<f64>, y: PtrMut<f64>, n: usize) {
    let mut total: f64 = 0.0;
    for i in 0..n {
        total += load(x + i);
    }
    for i in 0..n {
        store(y + i, (load(x + i) + total) * load(w + i));
    }
}
