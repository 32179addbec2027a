#[kernel]
fn k(x: Ptr<f32>, y: PtrMut<f32>, n: usize) {
    let v = load(x + arange(0, 64));
    match n {
        0 => store(y, 1.0),
        1 => store(y, 2.0),
    }
    match n {
        _ => store(y, 1.0),
        0 => {}
    }
    match n {
        Some(_) => {}
        ref m => {}
        _ => {}
    }
    match v {
        0.0 => store(y, 1.0),
        _ => {}
    }
    let a = match n {
        0 => 1.0f32,
        _ => 1i32,
    };
    store(y, a);
}
