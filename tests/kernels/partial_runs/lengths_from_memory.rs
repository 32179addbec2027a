//! Lengths of rows that are loaded: of several rows of a tile, and for the columns of all of them.
//! lengths: whole 16
//! x: whole 8192
//! y: zeros 8192
//! sums: zeros 128
//! grid: 16
fn kernel(lengths: Ptr<i32>, x: Ptr<bf16>, y: PtrMut<bf16>, sums: PtrMut<f32>) {
    let row = program_id(0);
    let length = load(lengths + row) as i64 * 11;
    let (i, j) = (arange(0, 8), arange(0, 64));
    let at = row * 512 + i.col() * 64 + j.row();
    let mask = (j.row() < length) & (i.col() <= length);
    let v = load(x + at, mask = mask);
    store(y + at, v * 3.0, mask = mask);
    store(sums + row * 8 + i, sum(v as f32, axis = 1));
}

fn reference(lengths: Ptr<i32>, x: Ptr<bf16>, y: PtrMut<bf16>, sums: PtrMut<f32>) {
    let row = program_id(0);
    let length = load(lengths + row) as i64 * 11;
    for i in 0..8 {
        let mut total = 0.0f32;
        for j in 0..64 {
            if j < length && i <= length {
                let at = row * 512 + i * 64 + j;
                total = total + load(x + at) as f32;
                store(y + at, load(x + at) * 3.0);
            }
        }
        store(sums + row * 8 + i, total);
    }
}
