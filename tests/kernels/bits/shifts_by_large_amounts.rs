//! The shift amount of a 64-bit integer has bits above the lowest 32, which the instruction ignores.
//! x: any 300
//! w: any 300
//! y: zeros 300
//! z: zeros 300
fn kernel(x: Ptr<i64>, w: Ptr<i64>, y: PtrMut<i64>, z: PtrMut<i64>) {
    let at = arange(0, 300);
    store(y + at, load(x + at) >> ((load(w + at) & 3) << 32));
    store(z + at, load(x + at) << (load(w + at) & 12884901889));
}

fn reference(x: Ptr<i64>, w: Ptr<i64>, y: PtrMut<i64>, z: PtrMut<i64>) {
    for i in 0..300 {
        let v = load(x + i);
        let a = load(w + i) & 3;
        let b = load(w + i) & 12884901889;
        store(y + i, if a == 0 { v } else { if v < 0 { -1 } else { 0 } });
        store(z + i, if b == 0 { v } else { if b == 1 { v + v } else { 0 } });
    }
}
