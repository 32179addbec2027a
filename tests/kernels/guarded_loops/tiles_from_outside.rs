//! A loop over rows that are not aligned uses a tile that was loaded in front of it, reduces in each iteration, stores, and carries a sum.
//! x: whole 3100
//! w: whole 300
//! y: zeros 3100
//! sums: zeros 300
//! rows: 0, 1, 7, 12, 8, 14
//! n: 257, 251, 251, 251, 256, 251
//! columns: 257, 251, 250, 251, 256, 251
fn kernel(x: Ptr<f16>, w: Ptr<f16>, y: PtrMut<f32>, sums: PtrMut<f32>, rows: usize, n: usize, columns: usize) {
    let column = arange(0, 512);
    let mask = column < columns;
    let weight = load(w + column, mask = mask) as f32;
    let mut total = zeros::<f32>([512]);
    for row in 0..rows {
        let v = load(x + row * n + column, mask = mask) as f32;
        let all = sum(v * weight);
        store(y + row * n + column, v * weight - all, mask = mask);
        total += v;
    }
    store(sums + column, total + weight, mask = mask);
}

fn reference(x: Ptr<f16>, w: Ptr<f16>, y: PtrMut<f32>, sums: PtrMut<f32>, rows: usize, n: usize, columns: usize) {
    for row in 0..rows {
        let mut all = 0.0f32;
        for column in 0..columns {
            all += load(x + row * n + column) as f32 * load(w + column) as f32;
        }
        for column in 0..columns {
            store(y + row * n + column, load(x + row * n + column) as f32 * load(w + column) as f32 - all);
        }
    }
    for column in 0..columns {
        let mut total = load(w + column) as f32;
        for row in 0..rows {
            total += load(x + row * n + column) as f32;
        }
        store(sums + column, total);
    }
}
