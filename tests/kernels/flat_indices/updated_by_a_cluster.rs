//! The CTAs of a program load by quotients from the tensor that they store to.
//! y: counting 4096
//! d: 8, 64, 7
//! ctas: 2
fn kernel(y: PtrMut<i32>, d: usize) {
    let o = arange(0, 1024);
    store(y + 2048 + o, load(y + o / d));
}

fn reference(y: PtrMut<i32>, d: usize) {
    for o in 0..1024 {
        store(y + 2048 + o, load(y + o / d));
    }
}
