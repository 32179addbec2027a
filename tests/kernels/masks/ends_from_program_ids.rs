//! A mask ends at the remainder or at the quotient of the number of a program, which may be negative.
//! x: whole 512
//! y: zeros 1024
//! n: 3, -3, 1, 2147483648, 0
//! grid: 4
fn kernel(x: Ptr<f32>, y: PtrMut<f32>, n: usize) {
    let column = arange(0, 128);
    let is_seen = column <= program_id(0) % n;
    store(y + program_id(0) * 128 + column, load(x + program_id(0) * 128 + column, mask = is_seen, other = 3.0));
    let is_stored = column < program_id(0) / n;
    store(y + 512 + program_id(0) * 128 + column, 1.0, mask = is_stored);
}

fn reference(x: Ptr<f32>, y: PtrMut<f32>, n: usize) {
    for i in 0..4 {
        for j in 0..128 {
            store(y + i * 128 + j, load(x + i * 128 + j, mask = j <= i % n, other = 3.0));
            store(y + 512 + i * 128 + j, 1.0, mask = j < i / n);
        }
    }
}
