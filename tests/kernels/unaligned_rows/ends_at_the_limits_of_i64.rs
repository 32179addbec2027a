//! The distance between the start of a row and the end of its mask does not fit in 64 bits, or the indices that the mask compares wrap.
//! x: whole 2000
//! y: zeros 256
//! a: 0, 100, 100, 9223372036854775704, 9223372036854775704, -9223372036854775808, -200
//! end: 252, 352, -9223372036854775804, 4, 9223372036854775804, 9223372036854775804, 9223372036854775804
//! n: 101, 101, 101, 101, 101, 101, 101
fn kernel(x: Ptr<f16>, y: PtrMut<f32>, a: usize, end: usize, n: usize) {
    let column = arange(0, 256);
    let v = load(x + n + column, mask = a + column < end, other = 2.0) as f32;
    store(y + column, v - sum(v));
}

fn reference(x: Ptr<f16>, y: PtrMut<f32>, a: usize, end: usize, n: usize) {
    let mut total = 0.0f32;
    for column in 0..256 {
        total += if a + column < end { load(x + n + column) as f32 } else { 2.0 };
    }
    for column in 0..256 {
        let v = if a + column < end { load(x + n + column) as f32 } else { 2.0 };
        store(y + column, v - total);
    }
}
