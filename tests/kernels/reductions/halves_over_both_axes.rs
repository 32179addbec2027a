//! The sum of a whole matrix of halves is rounded once: that of each row alone would be rounded down.
//! x: counting 64
//! y: zeros 1
//! z: zeros 1
fn kernel(x: Ptr<i32>, y: PtrMut<bf16>, z: PtrMut<f16>) {
    let columns = load(x + arange(0, 64)).row();
    let rows = arange(0, 4).col();
    let v = select(rows < 3, select(columns == 0, 5.0f32, 4.0f32), 0.0f32);
    store(y, sum(v as bf16));
    let v = select(rows < 3, select(columns == 0, 33.0f32, 32.0f32), 0.0f32);
    store(z, sum(v as f16));
}

fn reference(x: Ptr<i32>, y: PtrMut<bf16>, z: PtrMut<f16>) {
    store(y, (3 * 257) as bf16);
    store(z, (3 * 2049) as f16);
}
