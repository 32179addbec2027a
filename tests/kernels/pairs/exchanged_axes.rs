//! Indices that differ by one and by the order of their axes are no neighbours.
//! x: any 600
//! y: zeros 512
//! at: whole 16
fn kernel(x: Ptr<i32>, y: PtrMut<i32>, at: Ptr<i32>) {
    let i = arange(0, 16);
    let rows = abs(load(at + i)) as i64;
    let (down, right) = (rows.col() + zeros::<i64>([16, 16]), rows.row() + zeros::<i64>([16, 16]));
    let (low, high) = (load(x + 2 * down), load(x + 2 * right + 1));
    store(y + 16 * i.col() + i.row(), low - high);
}

fn reference(x: Ptr<i32>, y: PtrMut<i32>, at: Ptr<i32>) {
    for i in 0..16 {
        for j in 0..16 {
            store(y + 16 * i + j, load(x + 2 * (abs(load(at + i)) as i64)) - load(x + 2 * (abs(load(at + j)) as i64) + 1));
        }
    }
}
