//! The rows of a flat index, times the length of a row, which is even in some launches only. The rows are no affine index.
//! x: any 6000
//! y: zeros 3000
//! n: 1024, 1000, 1000, 1024
//! width: 64, 50, 25, 33
//! long: 128, 100, 51, 67
//! grid: 2
fn kernel(x: Ptr<f32>, y: PtrMut<f32>, n: usize, width: usize, long: usize) {
    let o = program_id(0) * 512 + arange(0, 512);
    let (row, column) = (o / width, o % width);
    let at = row * long + 2 * column;
    store(y + o, load(x + at, mask = o < n) - load(x + at + 1, mask = o < n), mask = o < n);
}

fn reference(x: Ptr<f32>, y: PtrMut<f32>, n: usize, width: usize, long: usize) {
    for o in 0..n {
        let at = o / width * long + 2 * (o % width);
        store(y + o, load(x + at) - load(x + at + 1));
    }
}
