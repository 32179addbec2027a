//! Strides that are arguments: wide accesses need each of them to be a multiple of a run.
//! x: any 4096
//! y: zeros 2048
//! a: 640, 640, 572, 645, 640
//! b: 40, 36, 40, 40, 40
//! p: 16, 0, 0, 0, 4
//! m: 16
//! k: 32, 32, 32, 32, 32
//! grid: 2
fn kernel(x: Ptr<f16>, y: PtrMut<f16>, a: usize, b: usize, p: usize, m: usize, k: usize) {
    let o = program_id(0) * 1024 + arange(0, 1024);
    let from = o / (k * m) * a + o / k % m * b + (o % k + p);
    store(y + o, load(x + from));
}

fn reference(x: Ptr<f16>, y: PtrMut<f16>, a: usize, b: usize, p: usize, m: usize, k: usize) {
    for i in 0..1024 {
        let o = program_id(0) * 1024 + i;
        store(y + o, load(x + o / (k * m) * a + o / k % m * b + o % k + p));
    }
}
