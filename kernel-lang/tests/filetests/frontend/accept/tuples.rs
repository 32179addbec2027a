#[kernel(N = 64)]
fn tuples<const N: usize>(x: Ptr<f32>, y: PtrMut<f32>, n: usize) {
    let offsets = arange(0, N);
    let (mut a, mut b) = (load(x + offsets), 1.0f32);
    let pair = (a, (b, n));
    let (c, (d, _)) = pair;
    (b, _) = (d + 1.0, 0);
    for i in 0..n {
        (a, b) = (a + b, load(x + i));
    }
    let t = { let s = a * 2.0; (s, b) };
    let () = ();
    let u = if n > 2 { (t.0, t.1) } else { (c, d) };
    store(y + offsets, u.0 + u.1 + (pair.1).0);
}
