//! An offset fits in 32 bits, but the sum of its parts without the constant does not.
//! x: any 4096
//! y: zeros 1024
//! first: 1073741824, 1073741824, 1073742000
//! d: 512, 1024, 500
//! k: 2097152, 1048576, 2147484
fn kernel(x: Ptr<f32>, y: PtrMut<f32>, first: usize, d: usize, k: usize) {
    let i = arange(0, 1024);
    let o = first + i;
    store(y + i, load(x + (o / d - 2097152) * 1024 + o % d) + load(x + (o / d - k) * 1024 + o % d));
}

fn reference(x: Ptr<f32>, y: PtrMut<f32>, first: usize, d: usize, k: usize) {
    for i in 0..1024 {
        let o = first + i;
        store(y + i, load(x + (o / d - 2097152) * 1024 + o % d) + load(x + (o / d - k) * 1024 + o % d));
    }
}
