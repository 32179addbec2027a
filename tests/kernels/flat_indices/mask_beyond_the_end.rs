//! A mask lets through more than the tensor has.
//! x: any 50
//! y: zeros 1024
//! k: 60, 60, 10
//! d: 64, 48, 40
fn kernel(x: Ptr<f32>, y: PtrMut<f32>, k: usize, d: usize) {
    let o = arange(0, 1024);
    let c = o % d;
    store(y + o, load(x + c, mask = c < k));
}

fn reference(x: Ptr<f32>, y: PtrMut<f32>, k: usize, d: usize) {
    for o in 0..1024 {
        let c = o % d;
        if c < k {
            store(y + o, load(x + c));
        }
    }
}
