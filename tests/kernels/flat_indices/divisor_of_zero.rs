//! The remainder by zero is the index itself, which lies outside of the tensor.
//! x: any 500
//! y: zeros 1024
//! d: 0, 64, 7
fn kernel(x: Ptr<f32>, y: PtrMut<f32>, d: usize) {
    let o = arange(0, 1024);
    let c = o % d;
    store(y + o, load(x + c));
}

fn reference(x: Ptr<f32>, y: PtrMut<f32>, d: usize) {
    for o in 0..1024 {
        let c = o % d;
        store(y + o, load(x + c));
    }
}
