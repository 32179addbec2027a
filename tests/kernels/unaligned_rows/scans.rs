//! Scans of rows that begin at any address. What is computed from a scan and from numbers that all elements share moves to the layout of the scan, other ops do not.
//! x: whole 5000
//! y: zeros 5000
//! z: zeros 5000
//! n: 1201, 1208, 1024, 1023, 1, 0
//! start: 0, 8, 0, 1, 5, 7
//! by: 3, 1, 2, 5, 4, 7
//! grid: 4
fn kernel(x: Ptr<f16>, y: PtrMut<i16>, z: PtrMut<f32>, n: usize, start: usize, by: i32) {
    let row = program_id(0);
    let mut before = 0.0f32;
    for first in range(0, n, 1024) {
        let column = first + arange(0, 1024);
        let at = start + row * n + column;
        let v = load(x + at, mask = column < n) as f32;
        let sums = cumsum(v);
        store(y + at, ((sums + before) as i32 * by + 1) as i16, mask = column < n);
        let back = cumsum(v, reverse = true);
        store(z + at, back * v + abs(back) - sums, mask = column < n);
        before += sum(v);
    }
}

fn reference(x: Ptr<f16>, y: PtrMut<i16>, z: PtrMut<f32>, n: usize, start: usize, by: i32) {
    let row = program_id(0);
    let mut before = 0.0f32;
    let mut back = 0.0f32;
    let mut sums = 0.0f32;
    for j in 0..n {
        let at = start + row * n + j;
        before += load(x + at) as f32;
        store(y + at, (before as i32 * by + 1) as i16);
        sums = if j % 1024 == 0 { load(x + at) as f32 } else { sums + load(x + at) as f32 };
        store(z + at, load(z + at) - sums);
        let k = n - 1 - j;
        let v = load(x + start + row * n + k) as f32;
        if (k + 1) % 1024 == 0 {
            back = 0.0;
        }
        back += v;
        let to = start + row * n + k;
        store(z + to, load(z + to) + back * v + abs(back));
    }
}
