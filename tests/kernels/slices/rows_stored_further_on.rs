//! Each element of two rows is stored 128 further on in its row, where another lane, of the same thread, has loaded; masks leave a part of each row.
//! x: any 1400
//! n: 0, 1, 131, 303, 511
fn kernel(x: PtrMut<i32>, n: usize) {
    let column = arange(0, 512);
    let at = arange(0, 2).col() * 700 + column.row();
    let mask = (column < n).row().broadcast_to([2, 512]);
    store(x + 128 + at, load(x + at, mask = mask) + 1, mask = mask);
}

fn reference(x: PtrMut<i32>, n: usize) {
    for row in 0..2 {
        for i in range(0, n, 1).rev() {
            store(x + 128 + row * 700 + i, load(x + row * 700 + i) + 1);
        }
    }
}
