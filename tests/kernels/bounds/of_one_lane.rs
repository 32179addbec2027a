//! Ranges that do not begin at zero, and a range of one index that is repeated along an axis.
//! x: any 600
//! y: zeros 576
//! s: 0, 3, -4, 500
fn kernel(x: Ptr<i32>, y: PtrMut<i32>, s: usize) {
    let lanes = arange(0, 64);
    store(y + lanes, load(x + broadcast_to(arange(5, 6), [64])));
    store(y + arange(64, 128), load(x + s + arange(5, 69)));
    let rows = s + arange(2, 3).col() * 8;
    let columns = arange(1, 65).row();
    store(y + 127 + columns, load(x + rows + columns));
    let matrix = arange(3, 7).col() * 64 + lanes.row();
    store(y + matrix, load(x + broadcast_to(rows + arange(4, 5).row(), [4, 64])));
    store(y + 448 + lanes, load(x + broadcast_to(s + 2 * arange(3, 4), [64]), mask = lanes < 40));
}

fn reference(x: Ptr<i32>, y: PtrMut<i32>, s: usize) {
    for i in 0..64 {
        store(y + i, load(x + 5));
        store(y + 64 + i, if s + 5 + i < 600 { load(x + s + 5 + i) } else { 0 });
        store(y + 128 + i, if s + 17 + i < 600 { load(x + s + 17 + i) } else { 0 });
        for j in 0..4 {
            store(y + 192 + j * 64 + i, load(x + s + 20));
        }
        store(y + 448 + i, if i < 40 { load(x + s + 6) } else { 0 });
    }
}
