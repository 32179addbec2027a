//! Neighbours of a remainder: in some launches only the last one leaves the tensor behind its end, or only the first one in front of it.
//! x: any 128
//! y: zeros 1024
//! d: 128, 127, 126, 64
//! s: 1, 1, 0, 2
fn kernel(x: Ptr<f32>, y: PtrMut<f32>, d: usize, s: usize) {
    let o = arange(0, 1024);
    let c = o % d + s;
    let middle = load(x + c - 1) + load(x + c);
    let outer = load(x + c - 2) - load(x + c + 1);
    store(y + o, middle + outer);
}

fn reference(x: Ptr<f32>, y: PtrMut<f32>, d: usize, s: usize) {
    for o in 0..1024 {
        let c = o % d + s;
        let middle = load(x + c - 1) + load(x + c);
        let outer = load(x + c - 2) - load(x + c + 1);
        store(y + o, middle + outer);
    }
}
