#[kernel(do_not_specialize = ["n"])]
fn do_not_specialize_text(x: PtrMut<f32>, n: usize) {
    store(x + n, 1.0);
}
