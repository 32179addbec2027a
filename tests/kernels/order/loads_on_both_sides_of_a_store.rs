//! Many registers are loaded in front of a store, and behind it what it stored. One of the loads behind it has a loaded address.
//! x: any 3072
//! z: any 1024
//! y: zeros 3072
fn kernel(x: Ptr<f32>, z: Ptr<i32>, y: PtrMut<f32>) {
    let at = arange(0, 1024);
    let a = load(x + at);
    let b = load(x + 1024 + at);
    store(y + at, abs(a) + b);
    let again = load(y + at);
    let double = again + again;
    let chosen = load(z + at) & 1023;
    let c = load(x + 2048 + chosen as i64);
    let d = load(x + 1023 - at);
    store(y + 1024 + at, double - c);
    store(y + 2048 + at, c + d);
}

fn reference(x: Ptr<f32>, z: Ptr<i32>, y: PtrMut<f32>) {
    for i in 0..1024 {
        store(y + i, abs(load(x + i)) + load(x + 1024 + i));
    }
    for i in 0..1024 {
        let again = load(y + i);
        let c = load(x + 2048 + (load(z + i) & 1023) as i64);
        store(y + 1024 + i, again + again - c);
        store(y + 2048 + i, c + load(x + 1023 - i));
    }
}
