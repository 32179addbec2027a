//! A tile that is loaded by flattened indices is used in a loop behind, and summed: the CTAs of a program share it.
//! x: whole 2048
//! y: zeros 8192
//! d: 64, 48, 7
//! ctas: 2
fn kernel(x: Ptr<i32>, y: PtrMut<i32>, d: usize) {
    let o = arange(0, 2048);
    let v = load(x + o / d * d + (d - 1 - o % d));
    store(y + o, v);
    for i in range(1, 4) {
        store(y + o + i * 2048, v * i as i32 + sum(v, axis = 0));
    }
}

fn reference(x: Ptr<i32>, y: PtrMut<i32>, d: usize) {
    let mut total = 0i32;
    for o in 0..2048 {
        total += load(x + o / d * d + (d - 1 - o % d));
    }
    for o in 0..2048 {
        let v = load(x + o / d * d + (d - 1 - o % d));
        store(y + o, v);
        for i in 1..4 {
            store(y + o + i * 2048, v * i as i32 + total);
        }
    }
}
