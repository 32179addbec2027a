//! The first indices of each row lie in front of the tensor.
//! x: any 1000
//! y: zeros 1024
//! d: 64, 7, 1
fn kernel(x: Ptr<f32>, y: PtrMut<f32>, d: usize) {
    let o = arange(0, 1024);
    let c = o % d;
    store(y + o, load(x + c - 5));
}

fn reference(x: Ptr<f32>, y: PtrMut<f32>, d: usize) {
    for o in 0..1024 {
        let c = o % d;
        store(y + o, load(x + c - 5));
    }
}
