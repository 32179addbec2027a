//! Floats whose range is unknown, and which are beyond 32 bits, are cast to indices: clamped, they are coordinates; as they are, they are stored.
//! x: any 1024
//! y: zeros 1024
//! z: zeros 1024
//! w: 32, 24, 7
//! by: 1000000000, 1000000000, 1000000000
fn kernel(x: Ptr<i32>, y: PtrMut<i32>, z: PtrMut<i64>, w: usize, by: f32) {
    let o = arange(0, 1024);
    let c = (o % w) as f32;
    let far = max(c * by - 2000000000.0, 0.0) as i64;
    let near = min(far, w - 1);
    store(z + o, far);
    store(y + o, load(x + o / w * w + near) + near as i32);
}

fn reference(x: Ptr<i32>, y: PtrMut<i32>, z: PtrMut<i64>, w: usize, by: f32) {
    for o in 0..1024 {
        let c = (o % w) as f32;
        let far = max(c * by - 2000000000.0, 0.0) as i64;
        let near = min(far, w - 1);
        store(z + o, far);
        store(y + o, load(x + o / w * w + near) + near as i32);
    }
}
