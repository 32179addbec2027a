//! Rows are summed, and then multiplied by weights that were loaded in front of the sums; masks cut rows and columns.
//! x: any 1536
//! w: any 512
//! y: zeros 1536
//! sums: zeros 4
//! n: 0, 1, 300, 511, 512
fn kernel(x: Ptr<i16>, w: Ptr<i16>, y: PtrMut<i32>, sums: PtrMut<i32>, n: usize) {
    let row = arange(0, 4);
    let column = arange(0, 512);
    let inside = column < n;
    let mask = (row < 3).col() & inside.row();
    let at = row.col() * n + column.row();
    let v = load(x + at, mask = mask) as i32;
    let weight = load(w + column, mask = inside) as i32;
    let total = sum(v, axis = 1);
    store(sums + row, total, mask = row < 3);
    store(y + at, (v + total.col()) * weight.row(), mask = mask);
}

fn reference(x: Ptr<i16>, w: Ptr<i16>, y: PtrMut<i32>, sums: PtrMut<i32>, n: usize) {
    for r in 0..3 {
        let mut total = 0;
        for i in 0..n {
            total += load(x + r * n + i) as i32;
        }
        store(sums + r, total);
        for i in 0..n {
            store(y + r * n + i, (load(x + r * n + i) as i32 + total) * load(w + i) as i32);
        }
    }
}
