//! Products that are added, subtracted and subtracted from, where the kernel allows one rounding for two: whole numbers need none.
//! x: whole 300
//! y: zeros 400
#[kernel(contract)]
fn kernel(x: Ptr<f32>, y: PtrMut<f32>) {
    let lanes = arange(0, 128);
    let mask = lanes < 100;
    let a = load(x + lanes, mask = mask);
    let b = load(x + 100 + lanes, mask = mask);
    let c = load(x + 200 + lanes, mask = mask);
    store(y + lanes, a * b + c, mask = mask);
    store(y + 100 + lanes, a * c - b, mask = mask);
    store(y + 200 + lanes, a - b * c, mask = mask);
    store(y + 300 + lanes, a * a - b * b, mask = mask);
}

fn reference(x: Ptr<f32>, y: PtrMut<f32>) {
    for i in 0..100 {
        let a = load(x + i) as i32;
        let b = load(x + 100 + i) as i32;
        let c = load(x + 200 + i) as i32;
        store(y + i, (a * b + c) as f32);
        store(y + 100 + i, (a * c - b) as f32);
        store(y + 200 + i, (a - b * c) as f32);
        store(y + 300 + i, (a * a - b * b) as f32);
    }
}
