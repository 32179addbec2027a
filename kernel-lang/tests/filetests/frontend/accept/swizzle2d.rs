#[kernel]
fn order<const GROUP: usize>(y: PtrMut<i64>, rows: usize, columns: i32) {
    let (i, j) = swizzle2d(program_id(0), program_id(1), rows, columns, GROUP);
    store(y + i * columns + j, i);
    let (k, _) = swizzle2d(arange(0, 64), 0, 8, 8, 3);
    store(y + arange(0, 64), k);
}
