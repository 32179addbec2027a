#[kernel(N = 64)]
fn early_return<const N: usize>(x: Ptr<f32>, y: PtrMut<f32>, n: usize) {
    let pid = program_id(0);
    if pid * N >= n {
        return;
    }
    let offsets = pid * N + arange(0, N);
    let v = load(x + offsets);
    if pid == 0 {
        store(y, 1.0);
        if n == 7 {
            return;
        }
        store(y, 2.0);
    }
    store(y + offsets, v);
    if n == 8 {
        store(y, 3.0);
        return;
    } else if n == 9 {
        return;
    }
    let w = if n > 10 { v * 2.0 } else { return };
    store(y + offsets, w);
    return;
}
