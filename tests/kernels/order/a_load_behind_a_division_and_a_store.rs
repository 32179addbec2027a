//! A load moves in front of a division, but not in front of a store that lies between them.
//! x: whole 600
//! y: zeros 600
//! z: zeros 600
//! n: 600, 512, 300, 128, 1, 0
//! a: 3, 1, 7, 2, 5, 4
//! grid: 4
fn kernel(x: Ptr<f32>, y: PtrMut<f32>, z: PtrMut<f32>, n: usize, a: f32) {
    let i = program_id(0) * 128 + arange(0, 128);
    let v = load(x + i, mask = i < n);
    let quotient = v / a;
    store(y + i, v + 1.0, mask = i < n);
    let stored = load(y + i, mask = i < n);
    store(z + i, quotient + stored, mask = i < n);
}

fn reference(x: Ptr<f32>, y: PtrMut<f32>, z: PtrMut<f32>, n: usize, a: f32) {
    for j in 0..128 {
        let i = program_id(0) * 128 + j;
        if i < n {
            let v = load(x + i);
            store(y + i, v + 1.0);
            store(z + i, v / a + (v + 1.0));
        }
    }
}
