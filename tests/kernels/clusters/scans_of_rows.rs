//! Scans along the rows of a tile that several CTAs share: each CTA has whole rows.
//! x: whole 1024
//! y: zeros 1024
//! ctas: 4
fn kernel(x: Ptr<i32>, y: PtrMut<i32>) {
    let at = 128 * arange(0, 8).col() + arange(0, 128).row();
    store(y + at, cumsum(load(x + at), axis = 1));
}

fn reference(x: Ptr<i32>, y: PtrMut<i32>) {
    for i in 0..8 {
        let mut total = 0;
        for j in 0..128 {
            total += load(x + 128 * i + j);
            store(y + 128 * i + j, total);
        }
    }
}
