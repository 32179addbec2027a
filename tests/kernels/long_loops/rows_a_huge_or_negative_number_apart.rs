//! A loop over rows whose distance is an argument: rows that go down, and rows so far apart that their indices wrap around.
//! x: whole 1000
//! y: zeros 1
//! first: 200, 900, 900, 0, 0, 0, 0, 900, 5
//! distance: 1099511627776, -128, -1, 4611686018427387904, -9223372036854775808, 128, 4294967295, -1099511627776, 0
//! rows: 9, 9, 70, 9, 70, 7, 9, 9, 3
//! n: 1000, 1000, 1000, 600, 1000, 1000, 1000, 1000, 128
fn kernel(x: Ptr<i32>, y: PtrMut<i32>, first: usize, distance: usize, rows: usize, n: usize) {
    let mut total = zeros::<i32>([128]);
    for row in 0..rows {
        let at = first + row * distance + arange(0, 128);
        total = total * 3 + load(x + at, mask = at < n);
    }
    store(y, sum(total));
}

fn reference(x: Ptr<i32>, y: PtrMut<i32>, first: usize, distance: usize, rows: usize, n: usize) {
    let mut sum = 0i32;
    for i in 0..128 {
        let mut total = 0i32;
        for row in 0..rows {
            let at = first + row * distance + i;
            total *= 3;
            if at < n {
                total += load(x + at);
            }
        }
        sum += total;
    }
    store(y, sum);
}
