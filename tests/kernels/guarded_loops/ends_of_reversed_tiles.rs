//! A mask that the loop index moves far past its end, of a tile whose elements are loaded in reverse: the distance leaves 32 bits in a later iteration.
//! x: whole 4096
//! c: counting 1
//! y: zeros 64
//! n: 2050, 4033, 7
fn kernel(x: Ptr<f32>, c: Ptr<i64>, y: PtrMut<f32>, n: usize) {
    let p = arange(0, 64);
    let end = n + load(c);
    let mut total = zeros::<f32>([64]);
    for i in range(0, end, 1) {
        total += load(x + i + 63 - p, mask = i * 1048576 + p < end);
    }
    store(y + p, total);
}

fn reference(x: Ptr<f32>, c: Ptr<i64>, y: PtrMut<f32>, n: usize) {
    for p in 0..64 {
        let mut total = 0.0f32;
        for i in 0..n {
            total += if i * 1048576 + p < n { load(x + i + 63 - p) } else { 0.0 };
        }
        store(y + p, total);
    }
}
