//! Indices that a loop moves down, by a number and by an argument, and some that are mirrored in each iteration.
//! x: any 900
//! y: zeros 900
//! z: zeros 900
//! w: zeros 900
//! n: 4, 1, 0, 3
//! s: 64, 80, 3, -64
fn kernel(x: Ptr<f32>, y: PtrMut<f32>, z: PtrMut<f32>, w: PtrMut<f32>, n: i64, s: i64) {
    let mut at = arange(0, 64) + 800;
    let mut by = arange(0, 64) + 600;
    let mut mirrored = arange(0, 64) + 20;
    for i in range(0, n, 1) {
        let v = load(x + at);
        store(y + at, v);
        store(z + by, v);
        store(w + mirrored, v);
        at -= 96;
        by -= s;
        mirrored = 300 + 130 * i - mirrored;
    }
}

fn reference(x: Ptr<f32>, y: PtrMut<f32>, z: PtrMut<f32>, w: PtrMut<f32>, n: i64, s: i64) {
    let (mut at, mut by) = (800, 600);
    for i in range(0, n, 1) {
        for lane in 0..64 {
            let mut mirrored = lane + 20;
            for j in range(0, i, 1) {
                mirrored = 300 + 130 * j - mirrored;
            }
            let v = load(x + at + lane);
            store(y + at + lane, v);
            store(z + by + lane, v);
            store(w + mirrored, v);
        }
        at = at - 96;
        by = by - s;
    }
}
