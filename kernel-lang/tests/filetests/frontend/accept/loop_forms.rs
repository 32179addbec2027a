#[kernel]
fn k(x: Ptr<f32>, y: PtrMut<f32>, n: usize) {
    let mut i = 0;
    loop {
        let v = load(x + i);
        if v < 0.0 {
            break;
        }
        store(y + i, v);
        i += 1;
        if i == n {
            return;
        }
    }
    for j in 1..=n {
        store(y + j, 0.0);
    }
}
