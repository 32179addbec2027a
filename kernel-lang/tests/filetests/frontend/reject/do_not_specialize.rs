#[kernel(assume(n = 1), do_not_specialize = [m, x, n])]
fn do_not_specialize(x: PtrMut<f32>, n: usize) {
    store(x + n, 1.0);
}
