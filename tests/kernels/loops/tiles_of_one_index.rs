//! Tiles whose elements have one index, which is compared with numbers as far away as there are.
//! x: whole 5
//! y: zeros 16
//! n: 0, -1, 1, -9223372036854775808, 0, 4
//! m: 9223372036854775807, 0, 5, 9223372036854775807, 0, 9223372036854775806
fn kernel(x: Ptr<f32>, y: PtrMut<f32>, n: i64, m: i64) {
    let mut above = zeros::<f32>([8]);
    let mut below = zeros::<f32>([8]);
    for step in range(0, 3) {
        let at = step * 64 + arange(0, 8) * 0;
        above += load(x + at, mask = at >= n, other = 0.5);
    }
    for step in range(0, 3) {
        let at = step * 64 + arange(0, 8) * 0;
        below += load(x + at, mask = at <= m, other = 0.25);
    }
    store(y + arange(0, 8), above);
    store(y + 8 + arange(0, 8), below);
}

fn reference(x: Ptr<f32>, y: PtrMut<f32>, n: i64, m: i64) {
    for lane in 0..8 {
        let mut above = 0.0f32;
        let mut below = 0.0f32;
        for step in range(0, 3) {
            above += load(x + step * 64, mask = step * 64 >= n, other = 0.5);
            below += load(x + step * 64, mask = step * 64 <= m, other = 0.25);
        }
        store(y + lane, above);
        store(y + 8 + lane, below);
    }
}
