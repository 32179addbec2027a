//! Sums of columns of a tile that is not full: a slice of the tile has a part of each sum.
//! x: whole 4096
//! c: zeros 128
//! n: 4096, 4095, 2100, 64, 1, 0
//! grid: 2
fn kernel(x: Ptr<f32>, c: PtrMut<f32>, n: usize) {
    let o = program_id(0) * 2048 + arange(0, 2048);
    let v = reshape(load(x + o, mask = o < n), [32, 64]);
    store(c + program_id(0) * 64 + arange(0, 64), sum(v, axis = 0));
}

fn reference(x: Ptr<f32>, c: PtrMut<f32>, n: usize) {
    for column in 0..64 {
        let mut total: f32 = 0.0;
        for row in 0..32 {
            let o = program_id(0) * 2048 + row * 64 + column;
            if o < n {
                total += load(x + o);
            }
        }
        store(c + program_id(0) * 64 + column, total);
    }
}
