//! A comparison chooses one of two indices that would both leave the tensor elsewhere. In some launches, the chosen one leaves it, too.
//! x: whole 64
//! y: zeros 1024
//! w: 64, 64, 40, 64, 65
//! p: 4, 3, 8, 70, 2
//! q: 60, 61, 20, 0, 60
fn kernel(x: Ptr<f32>, y: PtrMut<f32>, w: usize, p: usize, q: usize) {
    let o = arange(0, 1024);
    let c = o % (w + p);
    let back = load(x + select(c >= w, 2 * (w - 1) - c, c));
    let wrapped = load(x + select(w <= c, c - w, c));
    let moved = load(x + select(c > q, c - q, 63 - c));
    store(y + o, back + wrapped * 2.0 + moved * 4.0);
}

fn reference(x: Ptr<f32>, y: PtrMut<f32>, w: usize, p: usize, q: usize) {
    for o in 0..1024 {
        let c = o % (w + p);
        let back = load(x + select(c >= w, 2 * (w - 1) - c, c));
        let wrapped = load(x + select(w <= c, c - w, c));
        let moved = load(x + select(c > q, c - q, 63 - c));
            store(y + o, back + wrapped * 2.0 + moved * 4.0);
    }
}
