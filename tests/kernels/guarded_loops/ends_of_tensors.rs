//! A loop over rows that are not aligned leaves the tensor at its end, or in front of its start, without a mask.
//! x: whole 1000
//! y: zeros 256
//! rows: 5, 3, 9, 4, 40
//! n: 201, 201, 201, -101, 25
//! start: 0, 700, -100, 303, -1
fn kernel(x: Ptr<u8>, y: PtrMut<i32>, rows: usize, n: usize, start: usize) {
    let column = arange(0, 256);
    let mut total = zeros::<i32>([256]);
    for row in 0..rows {
        total = total * 3 + load(x + start + row * n + column) as i32;
    }
    store(y + column, total);
}

fn reference(x: Ptr<u8>, y: PtrMut<i32>, rows: usize, n: usize, start: usize) {
    for column in 0..256 {
        let mut total = 0i32;
        for row in 0..rows {
            total = total * 3 + load(x + start + row * n + column) as i32;
        }
        store(y + column, total);
    }
}
