//! Loops that run full tiles take their indices apart, too. In the second one, runs do not begin where wide accesses do.
//! x: whole 1100
//! w: whole 200
//! y: zeros 1100
//! z: zeros 1100
//! n: 1024, 1000, 1024, 1024, 1028, 260, 0
//! d: 64, 8, 7, 1024, 16, 8, 8
fn kernel(x: Ptr<f16>, w: Ptr<f32>, y: PtrMut<f32>, z: PtrMut<f32>, n: usize, d: usize) {
    for first in range(0, n, 256) {
        let at = first + arange(0, 256);
        let v = load(x + at, mask = at < n) as f32;
        store(y + at, v * load(w + at / d, mask = at < n) + (at % d) as f32, mask = at < n);
    }
    for first in range(4, n, 256) {
        let at = first + arange(0, 256);
        let v = load(x + at + 4, mask = at < n) as f32;
        store(z + at, v * load(w + at / d, mask = at < n), mask = at < n);
    }
}

fn reference(x: Ptr<f16>, w: Ptr<f32>, y: PtrMut<f32>, z: PtrMut<f32>, n: usize, d: usize) {
    for at in 0..n {
        store(y + at, load(x + at) as f32 * load(w + at / d) + (at % d) as f32);
        if at >= 4 {
            store(z + at, load(x + at + 4) as f32 * load(w + at / d));
        }
    }
}
