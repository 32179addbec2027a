//! Rows up to an element whose index is an argument. It may begin a run of elements that an aligned row loads together, or end one.
//! x: whole 8200
//! y: zeros 8200
//! n: 256, 256, 256, 255, 255, 256, 256
//! last: 200, 199, 201, 200, 199, -1, 300
//! grid: 32
fn kernel(x: Ptr<f32>, y: PtrMut<f32>, n: usize, last: usize) {
    let row = program_id(0);
    let column = arange(0, 256);
    let v = load(x + row * n + column, mask = column <= last, other = 1.0);
    store(y + row * n + column, v - sum(v), mask = column < n);
}

fn reference(x: Ptr<f32>, y: PtrMut<f32>, n: usize, last: usize) {
    let row = program_id(0);
    let mut total = 0.0f32;
    for column in 0..256 {
        total += if column <= last { load(x + row * n + column) } else { 1.0 };
    }
    for column in 0..n {
        let at = row * n + column;
        let v = if column <= last { load(x + at) } else { 1.0 };
        store(y + at, v - total);
    }
}
