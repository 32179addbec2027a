#[kernel(N = 64)]
fn k<const N: usize>(x: Ptr<f32>, y: PtrMut<f32>, n: usize) {
    let at = arange(0, N);
    assume();
    assume(n);
    assume(n > 0, "n is 0");
    assume(x);
    n.assume();
    let known = assume(n > 0);
    store(y + at, known);
    multiple_of(n);
    multiple_of(load(x + at), 16);
    multiple_of(n, 16.0);
    max_contiguous(at, 16);
    store(y, reduce(load(x + at), 0, |a, b| { assume(a > b); a }));
}
