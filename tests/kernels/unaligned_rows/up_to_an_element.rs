//! A row that ends with an element, not in front of it: `column <= end`, where the end may be the last element, in front of the row, or behind the tile.
//! x: whole 8191
//! y: zeros 8191
//! n: 255, 256, 250, 249, 1
//! shift: 0, 0, -5, 300, -1
//! grid: 32
fn kernel(x: Ptr<f32>, y: PtrMut<f32>, n: usize, shift: usize) {
    let row = program_id(0);
    let column = arange(0, 256);
    let end = row * 8 + shift;
    let v = load(x + row * n + column, mask = column <= end, other = 1.0);
    store(y + row * n + column, v - sum(v), mask = column < n);
}

fn reference(x: Ptr<f32>, y: PtrMut<f32>, n: usize, shift: usize) {
    let row = program_id(0);
    let mut total = 0.0f32;
    for column in 0..256 {
        total += if column <= row * 8 + shift { load(x + row * n + column) } else { 1.0 };
    }
    for column in 0..n {
        let at = row * n + column;
        let v = if column <= row * 8 + shift { load(x + at) } else { 1.0 };
        store(y + at, v - total);
    }
}
