//! An index that only a clamp uses besides two accesses: these are guarded, element by element, though their runs are aligned, and though another
//! access of the tensor is wide.
//! x: any 1002
//! y: zeros 1024
//! z: zeros 1002
//! d: 256, 256
//! p: 0, 1
//! q: 0, 0
//! last: 1001, 1001
fn kernel(x: Ptr<f32>, y: PtrMut<f32>, z: PtrMut<f32>, d: usize, p: usize, q: usize, last: usize) {
    let i = arange(0, 1024);
    let t = select(i / d < 3, p, q) * 4 + i;
    let wide = load(x + i / d * (d + 4) + i % d, mask = i / d < 3);
    store(y + i, load(x + min(t, last)) + load(x + t) + wide);
    store(z + t, full::<f32>([1024], 1.0));
}

fn reference(x: Ptr<f32>, y: PtrMut<f32>, z: PtrMut<f32>, d: usize, p: usize, q: usize, last: usize) {
    for i in 0..1024 {
        let t = select(i / d < 3, p, q) * 4 + i;
        let mut wide = 0.0f32;
        if i / d < 3 {
            wide = load(x + i / d * (d + 4) + i % d);
        }
        store(y + i, load(x + min(t, last)) + load(x + t) + wide);
        store(z + t, 1.0f32);
    }
}
