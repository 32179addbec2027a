#[kernel]
fn softmax<T: Float, const ROWS: usize, const COLS: usize>(x: Ptr<T>, y: PtrMut<T>, rows: usize, cols: usize) {
    let row = program_id(0) * ROWS + arange(0, ROWS);
    let col = arange(0, COLS);
    let offsets = row[(.., None)] * cols + col[(None, ..)];
    let mask = (row[(.., None)] < rows) & (col[(None, ..)] < cols);
    let v = load(x + offsets, mask = mask, other = -1000) as f32;
    let e = exp(v - max(v, axis = 1, keep_dims = true));
    let total = sum(select(mask, e, 0.0), axis = 1);
    store(y + offsets, (e / total[(.., None)]) as T, mask = mask);
}
