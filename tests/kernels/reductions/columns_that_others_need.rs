//! Sums of columns that are stored, and that a larger tile needs as well: lanes hold copies of them. They are summed once more, and lanes share those results.
//! x: whole 1024
//! y: zeros 1024
//! z: zeros 16
//! w: zeros 8
fn kernel(x: Ptr<f32>, y: PtrMut<f32>, z: PtrMut<f32>, w: PtrMut<f32>) {
    let (row, column) = (arange(0, 64), arange(0, 16));
    let at = 16 * row.col() + column.row();
    let v = load(x + at);
    let sums = sum(v, axis = 0);
    store(y + at, v - sums.row());
    store(z + column, sums);
    store(w + arange(0, 8), sum(reshape(sums, [2, 8]), axis = 0));
}

fn reference(x: Ptr<f32>, y: PtrMut<f32>, z: PtrMut<f32>, w: PtrMut<f32>) {
    for column in 0..16 {
        let mut total = 0.0f32;
        for row in 0..64 {
            total += load(x + 16 * row + column);
        }
        for row in 0..64 {
            store(y + 16 * row + column, load(x + 16 * row + column) - total);
        }
        store(z + column, total);
        store(w + column % 8, load(w + column % 8) + total);
    }
}
