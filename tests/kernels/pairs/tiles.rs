//! Tiles of two axes: rows of complex numbers, transposed; the length of a row is even, and once it is not.
//! x: any 8192
//! y: zeros 8192
//! rows: 64, 60, 33, 64
//! columns: 64, 50, 64, 33
//! stride: 128, 100, 129, 66
fn kernel(x: Ptr<f16>, y: PtrMut<f16>, rows: usize, columns: usize, stride: usize) {
    let (i, j) = (arange(0, 64).col(), arange(0, 64).row());
    let mask = (i < rows) & (j < columns);
    let at = i * stride + 2 * j;
    let (re, im) = (load(x + at, mask = mask), load(x + at + 1, mask = mask));
    let to = 2 * (j * rows + i);
    store(y + to, re, mask = mask);
    store(y + to + 1, -im, mask = mask);
}

fn reference(x: Ptr<f16>, y: PtrMut<f16>, rows: usize, columns: usize, stride: usize) {
    for i in 0..rows {
        for j in 0..columns {
            let (re, im) = (load(x + i * stride + 2 * j), load(x + i * stride + 2 * j + 1));
            store(y + 2 * (j * rows + i), re);
            store(y + 2 * (j * rows + i) + 1, -im);
        }
    }
}
