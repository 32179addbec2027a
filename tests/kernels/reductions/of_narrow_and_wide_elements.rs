//! Reduces bytes together with elements of 64 bits: in shared memory, the wide ones have to be aligned.
//! x: whole 1024
//! w: any 1024
//! y: zeros 1
//! z: zeros 1
fn kernel(x: Ptr<i8>, w: Ptr<i64>, y: PtrMut<i8>, z: PtrMut<i64>) {
    let lanes = arange(0, 1024);
    let (least, total) = reduce((load(x + lanes), load(w + lanes)), 0, |a, b| (min(a.0, b.0), a.1 + b.1));
    store(y, least);
    store(z, total);
}

fn reference(x: Ptr<i8>, w: Ptr<i64>, y: PtrMut<i8>, z: PtrMut<i64>) {
    let (mut least, mut total) = (load(x), load(w));
    for i in 1..1024 {
        least = min(least, load(x + i));
        total += load(w + i);
    }
    store(y, least);
    store(z, total);
}
