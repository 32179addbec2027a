#[kernel]
fn k(y: PtrMut<f32>, n: usize) {
    let (f, g) = (|a| a + 1.0, |a| a - 1.0);
    store(y, f(g(1.0)));
    let mut h = |a| a;
    h = |a| a + 1.0;
    store(y, h(1.0));
}
