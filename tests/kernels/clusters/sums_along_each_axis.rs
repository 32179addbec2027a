//! Sums along both axes of tiles that two CTAs share: no sum moves to the other CTA before it is stored.
//! x: whole 2048
//! y: zeros 32
//! z: zeros 128
//! ctas: 2
//! warps: 2
fn kernel(x: Ptr<f64>, y: PtrMut<f64>, z: PtrMut<f64>) {
    let v = load(x + (arange(0, 16).col() * 128 + arange(0, 128).row()));
    store(y + arange(0, 16), sum(v, axis = 1));
    store(z + arange(0, 128), sum(v, axis = 0));
}

fn reference(x: Ptr<f64>, y: PtrMut<f64>, z: PtrMut<f64>) {
    for i in 0..16 {
        let mut total: f64 = 0.0;
        for j in 0..128 {
            total += load(x + i * 128 + j);
        }
        store(y + i, total);
    }
    for j in 0..128 {
        let mut total: f64 = 0.0;
        for i in 0..16 {
            total += load(x + i * 128 + j);
        }
        store(z + j, total);
    }
}
