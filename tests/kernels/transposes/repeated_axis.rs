//! The load has no index along one axis of the output, so the axes beside it are not put together. They do not follow each other in the input either.
//! x: any 4096
//! y: zeros 8192
//! a: 32, 64, 16, 8
//! b: 2, 1, 4, 8
//! repeats: 2, 2, 3, 4
//! c: 64, 64, 32, 16
//! n: 8192, 8192, 6144, 4096
//! grid: 8
fn kernel(x: Ptr<bf16>, y: PtrMut<bf16>, a: usize, b: usize, repeats: usize, c: usize, n: usize) {
    let o = program_id(0) * 1024 + arange(0, 1024);
    let mask = o < n;
    let (k, j, i) = (o % a, o / a % b, o / (a * b * repeats));
    store(y + o, load(x + (k * b + j) * c + i, mask = mask), mask = mask);
}

fn reference(x: Ptr<bf16>, y: PtrMut<bf16>, a: usize, b: usize, repeats: usize, c: usize, n: usize) {
    for e in 0..1024 {
        let o = program_id(0) * 1024 + e;
        if o < n {
            store(y + o, load(x + (o % a * b + o / a % b) * c + o / (a * b * repeats)));
        }
    }
}
