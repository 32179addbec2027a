#[kernel(do_not_specialize = [])]
fn do_not_specialize_nothing(x: PtrMut<f32>, n: usize) {
    store(x + n, 1.0);
}
