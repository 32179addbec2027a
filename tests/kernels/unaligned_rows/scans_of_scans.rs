//! Scans of scans, in rows that begin at any address, with a store of the first one or without.
//! x: whole 5000
//! y: zeros 5000
//! z: zeros 5000
//! n: 1201, 1208, 1024, 1
//! start: 0, 8, 0, 5
//! grid: 4
fn kernel(x: Ptr<f64>, y: PtrMut<f32>, z: PtrMut<f32>, n: usize, start: usize) {
    let row = program_id(0);
    let column = arange(0, 2048);
    let at = start + row * n + column;
    let v = load(x + at, mask = column < n);
    let once = (cumsum(v) * 2.0) as f32;
    store(y + at, once, mask = column < n);
    store(z + at, cumsum(once) + cumsum(cummax(v, reverse = true)) as f32, mask = column < n);
}

fn reference(x: Ptr<f64>, y: PtrMut<f32>, z: PtrMut<f32>, n: usize, start: usize) {
    let row = program_id(0);
    let from = start + row * n;
    let mut once = 0.0f32;
    // Behind the end of a row, elements are 0.
    let mut most = 0.0f32;
    for j in 0..n {
        once += load(x + from + j) as f32;
        store(y + from + j, once * 2.0);
        let k = n - 1 - j;
        most = max(most, load(x + from + k) as f32);
        store(z + from + k, load(z + from + k) + most);
    }
    let mut total = 0.0f32;
    let mut twice = 0.0f32;
    once = 0.0;
    for j in 0..n {
        once += load(x + from + j) as f32;
        twice += once * 2.0;
        total += load(z + from + j);
        store(z + from + j, twice + total);
    }
}
