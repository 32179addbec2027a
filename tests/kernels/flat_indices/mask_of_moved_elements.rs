//! Masks from in front of the region whose elements were moved: they say nothing of the indices at the same positions.
//! x: whole 16
//! w: whole 4096
//! y: zeros 1024
//! v: zeros 1024
//! z: zeros 1
//! d: 1, 1, 64
//! s: 0, 5, 0
//! k: 16, 16, 5
//! l: 16, 4096, 4096
fn kernel(x: Ptr<f32>, w: Ptr<f32>, y: PtrMut<f32>, v: PtrMut<f32>, z: PtrMut<f32>, d: usize, s: usize, k: usize, l: usize) {
    let i = arange(0, 1024);
    let m = flip(i < k);
    let t = reshape(trans(reshape(i < 64, [32, 32])), [1024]);
    if k > 2000 {
        store(z, 1.0);
    }
    store(y + i, load(x + (i + s) / d, mask = m & (i < l)));
    store(v + i, load(w + i / 64 * 64 + i % 64, mask = t & (i / 64 < k)));
}

fn reference(x: Ptr<f32>, w: Ptr<f32>, y: PtrMut<f32>, v: PtrMut<f32>, z: PtrMut<f32>, d: usize, s: usize, k: usize, l: usize) {
    for i in 0..1024 {
        if 1023 - i < k && i < l {
            store(y + i, load(x + (i + s) / d));
        }
        if i % 32 * 32 + i / 32 < 64 && i / 64 < k {
            store(v + i, load(w + i));
        }
    }
}
