//! An index that was shifted below zero is divided again: quotients are rounded towards zero.
//! x: any 100
//! y: zeros 1024
//! d: 64, 40, 7
fn kernel(x: Ptr<f32>, y: PtrMut<f32>, d: usize) {
    let o = arange(0, 1024);
    let c = (o % d - 5) / 3 + (o % d - 5) % 3 + 4;
    store(y + o, load(x + c));
}

fn reference(x: Ptr<f32>, y: PtrMut<f32>, d: usize) {
    for o in 0..1024 {
        let c = (o % d - 5) / 3 + (o % d - 5) % 3 + 4;
        store(y + o, load(x + c));
    }
}
