//! The index for elements whose comparison is false is outside the tensor in some launches.
//! x: any 64
//! y: zeros 1024
//! w: 64, 68, 65, 40
//! q: 60, 61, 20, 0
fn kernel(x: Ptr<f32>, y: PtrMut<f32>, w: usize, q: usize) {
    let o = arange(0, 1024);
    let c = o % w;
    store(y + o, load(x + select(c < q, q - c, c)));
}

fn reference(x: Ptr<f32>, y: PtrMut<f32>, w: usize, q: usize) {
    for o in 0..1024 {
        let c = o % w;
        store(y + o, load(x + select(c < q, q - c, c)));
    }
}
