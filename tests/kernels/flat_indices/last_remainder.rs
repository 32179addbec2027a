//! The last remainder lies just outside of the tensor, or is its last element.
//! x: any 63
//! y: zeros 1024
//! d: 64, 63, 40
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
