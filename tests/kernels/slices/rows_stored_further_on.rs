//! Each element of two rows is stored 512 further on in its row, where another lane, of the same thread, has loaded; masks leave a part of each row.
//! x: any 5600
//! n: 0, 1, 524, 1212, 2047
//! warps: 1
fn kernel(x: PtrMut<i32>, n: usize) {
    let column = arange(0, 2048);
    let at = arange(0, 2).col() * 2800 + column.row();
    let mask = (column < n).row().broadcast_to([2, 2048]);
    store(x + 512 + at, load(x + at, mask = mask) + 1, mask = mask);
}

fn reference(x: PtrMut<i32>, n: usize) {
    for row in 0..2 {
        for i in range(0, n, 1).rev() {
            store(x + 512 + row * 2800 + i, load(x + row * 2800 + i) + 1);
        }
    }
}
