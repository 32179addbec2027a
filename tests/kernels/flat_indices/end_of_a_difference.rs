//! The largest difference lies outside of the tensor: it is that of the largest index and the smallest other one.
//! x: any 70
//! y: zeros 1024
//! d: 64, 40
fn kernel(x: Ptr<f32>, y: PtrMut<f32>, d: usize) {
    let o = arange(0, 1024);
    let c = o % d;
    store(y + o, load(x + (c - o / d + 15)));
}

fn reference(x: Ptr<f32>, y: PtrMut<f32>, d: usize) {
    for o in 0..1024 {
        let c = o % d;
        store(y + o, load(x + (c - o / d + 15)));
    }
}
