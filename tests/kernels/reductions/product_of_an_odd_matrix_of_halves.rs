//! The product of a whole matrix of halves is rounded once, also where its first extent is no power of two: rows may overflow by themselves.
//! x: counting 4
//! y: zeros 1
fn kernel(x: Ptr<i32>, y: PtrMut<f16>) {
    let columns = load(x + arange(0, 4)).row();
    let rows = arange(0, 3).col();
    let v = select(rows + 0 * columns == 2, 1.0f32 / 1024.0, 64.0f32) as f16;
    store(y, prod(v));
}

fn reference(x: Ptr<i32>, y: PtrMut<f16>) {
    store(y, 256.0);
}
