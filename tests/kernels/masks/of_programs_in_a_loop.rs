//! A mask of elements of the program is computed in front of a loop, and its limit is beyond the elements of all programs, or negative.
//! x: whole 3000
//! y: zeros 512
//! n: 300, 0, -1, 512, 9223372036854775807, -9223372036854775808, -9223372036854775700
//! s: 700, 701, 703, 700, 699, 700, 703
//! grid: 2
fn kernel(x: Ptr<f16>, y: PtrMut<f32>, n: usize, s: usize) {
    let column = program_id(0) * 256 + arange(0, 256);
    let mask = column < n;
    let mut total = zeros::<f32>([256]);
    for i in 0..4 {
        total += load(x + i * s + column, mask = mask, other = 2.0) as f32;
    }
    store(y + column, total);
}

fn reference(x: Ptr<f16>, y: PtrMut<f32>, n: usize, s: usize) {
    for column in 0..512 {
        let mut total = 0.0;
        for i in 0..4 {
            total += load(x + i * s + column, mask = column < n, other = 2.0) as f32;
        }
        store(y + column, total);
    }
}
