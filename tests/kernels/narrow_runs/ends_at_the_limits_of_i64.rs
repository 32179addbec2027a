//! The distance between the start of a tile and the end of its mask does not fit in 64 bits, or the indices that the mask compares wrap.
//! x: whole 2000
//! rows: counting 4
//! y: zeros 256
//! a: 0, 100, 100, 9223372036854775704, 9223372036854775704, -9223372036854775808, -200
//! end: 252, 352, -9223372036854775804, 4, 9223372036854775804, 9223372036854775804, 9223372036854775804
fn kernel(x: Ptr<f16>, rows: Ptr<i64>, y: PtrMut<f32>, a: usize, end: usize) {
    let column = arange(0, 256);
    let mask = a + column < end;
    let mut total = zeros::<f32>([256]);
    for i in 0..4 {
        let row = load(rows + i);
        total += load(x + row * 500 + column, mask = mask, other = 2.0) as f32;
    }
    store(y + column, total);
}

fn reference(x: Ptr<f16>, rows: Ptr<i64>, y: PtrMut<f32>, a: usize, end: usize) {
    for column in 0..256 {
        let mut total = 0.0;
        for i in 0..4 {
            if a + column < end {
                total += load(x + load(rows + i) * 500 + column) as f32;
            } else {
                total += 2.0;
            }
        }
        store(y + column, total);
    }
}
