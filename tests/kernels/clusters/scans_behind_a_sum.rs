//! CTAs read each other's parts of a sum; scans behind it wait for their own CTA only, and must not overwrite what others may still read.
//! x: whole 1024
//! y: zeros 2
//! w: whole 1024
//! z: zeros 1024
//! ctas: 4
fn kernel(x: Ptr<i32>, y: PtrMut<i32>, w: Ptr<i32>, z: PtrMut<i32>) {
    store(y + arange(0, 2), sum(load(x + 2 * arange(0, 512).col() + arange(0, 2).row()), axis = 0));
    let at = 128 * arange(0, 8).col() + arange(0, 128).row();
    let once = cumsum(load(w + at), axis = 1);
    let twice = cumsum(once, axis = 1);
    store(z + at, cumsum(twice, axis = 1));
}

fn reference(x: Ptr<i32>, y: PtrMut<i32>, w: Ptr<i32>, z: PtrMut<i32>) {
    for i in 0..512 {
        store(y, load(y) + load(x + 2 * i));
        store(y + 1, load(y + 1) + load(x + 2 * i + 1));
    }
    for i in 0..8 {
        let (mut once, mut twice, mut thrice) = (0, 0, 0);
        for j in 0..128 {
            once += load(w + 128 * i + j);
            twice += once;
            thrice += twice;
            store(z + 128 * i + j, thrice);
        }
    }
}
