//! A loop loads a number for each row from a tensor that the kernel writes in front of the loop and behind it.
//! x: whole 20480
//! s: whole 24
//! y: zeros 1024
//! rows: 20, 3, 1, 0
fn kernel(x: Ptr<f16>, s: PtrMut<f32>, y: PtrMut<f32>, rows: usize) {
    let column = arange(0, 1024);
    store(s + 1, 5.0);
    let mut total = zeros::<f32>([1024]);
    for row in range(0, rows, 1, num_stages = 4) {
        let v = load(x + row * 1024 + column) as f32;
        total += v * load(s + row);
        if load(s + row) > 0.0 {
            total += 1.0;
        }
    }
    store(s + 2, sum(total));
    store(y + column, total);
}

fn reference(x: Ptr<f16>, s: PtrMut<f32>, y: PtrMut<f32>, rows: usize) {
    store(s + 1, 5.0);
    let mut all = 0.0f32;
    for column in 0..1024 {
        let mut total = 0.0f32;
        for row in 0..rows {
            total += load(x + row * 1024 + column) as f32 * load(s + row);
            if load(s + row) > 0.0 {
                total += 1.0;
            }
        }
        store(y + column, total);
        all += total;
    }
    store(s + 2, all);
}
