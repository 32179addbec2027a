//! Remainders of every pair of numbers, some of which are subnormal.
//! x: any 128
//! y: any 128
//! z: zeros 16384
fn kernel(x: Ptr<f64>, y: Ptr<f64>, z: PtrMut<f64>) {
    let (i, j) = (arange(0, 128).col(), arange(0, 128).row());
    store(z + 128 * i + j, load(x + i) % load(y + j));
}
