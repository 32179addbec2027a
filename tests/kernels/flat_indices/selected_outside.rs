//! The second of two selected indices leaves the tensor.
//! x: any 40
//! y: zeros 1024
//! d: 64, 48, 7
fn kernel(x: Ptr<f32>, y: PtrMut<f32>, d: usize) {
    let o = arange(0, 1024);
    let c = o % d;
    store(y + o, load(x + select(c % 2 == 0, c / 2, c)));
}

fn reference(x: Ptr<f32>, y: PtrMut<f32>, d: usize) {
    for o in 0..1024 {
        let c = o % d;
        let at = select(c % 2 == 0, c / 2, c);
        store(y + o, load(x + at));
    }
}
