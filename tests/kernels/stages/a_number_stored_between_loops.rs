//! A loop loads numbers ahead. A number changes between two runs of the loop, and no barrier follows.
//! x: whole 20480
//! s: whole 24
//! y: zeros 1024
//! rows: 20, 3, 1, 0
//! warps: 8
fn kernel(x: Ptr<f16>, s: PtrMut<f32>, y: PtrMut<f32>, rows: usize) {
    let column = arange(0, 1024);
    let mut total = zeros::<f32>([1024]);
    for k in 0..3 {
        for row in range(0, rows, 1, num_stages = 3) {
            let v = load(x + row * 1024 + column) as f32;
            total += v * load(s + row);
        }
        store(s + rows - 1 - k, k as f32);
    }
    store(y + column, total);
}

fn reference(x: Ptr<f16>, s: PtrMut<f32>, y: PtrMut<f32>, rows: usize) {
    for column in 0..1024 { store(y + column, 0.0); }
    for k in 0..3 {
        for column in 0..1024 {
            let mut total = load(y + column);
            for row in 0..rows {
                total += load(x + row * 1024 + column) as f32 * load(s + row);
            }
            store(y + column, total);
        }
        store(s + rows - 1 - k, k as f32);
    }
}
