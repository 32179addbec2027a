//! Scans by functions whose sides may not be exchanged, in rows that begin at any address: the last element that is not zero, and remainders.
//! x: whole 5000
//! y: zeros 5000
//! z: zeros 5000
//! n: 1201, 1208, 1024, 1023, 1, 0
//! start: 0, 8, 0, 1, 5, 7
//! grid: 4
fn kernel(x: Ptr<i8>, y: PtrMut<i32>, z: PtrMut<i64>, n: usize, start: usize) {
    let row = program_id(0);
    let column = arange(0, 2048);
    let at = start + row * n + column;
    let v = load(x + at, mask = column < n);
    let w = select(v % 3 == 0, 0, v as i32);
    store(y + at, associative_scan(w, 0, |a, b| select(b == 0, a, b)), mask = column < n);
    let next = associative_scan(w, 0, |a, b| select(b == 0, a, b), reverse = true);
    store(z + at, (next * 10) as i64, mask = column < n);
}

fn reference(x: Ptr<i8>, y: PtrMut<i32>, z: PtrMut<i64>, n: usize, start: usize) {
    for row in 0..4 {
        let mut last = 0;
        for j in 0..n {
            let v = load(x + start + row * n + j);
            if v % 3 != 0 {
                last = v as i32;
            }
            store(y + start + row * n + j, last);
        }
        let mut next = 0;
        for k in 0..n {
            let j = n - 1 - k;
            let v = load(x + start + row * n + j);
            if v % 3 != 0 {
                next = v as i32;
            }
            store(z + start + row * n + j, (next * 10) as i64);
        }
    }
}
