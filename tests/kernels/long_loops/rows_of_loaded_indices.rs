//! Rows whose numbers are loaded, in a loop that is unrolled so that several of both are in flight, for any number of rows. Some rows begin at
//! addresses that are not aligned, and lie at the end of the tensor.
//! x: whole 4096
//! index: counting 32
//! y: zeros 512
//! rows: 0, 1, 2, 3, 4, 5, 7, 8, 9, 16
//! columns: 256, 256, 256, 256, 255, 256, 252, 256, 250, 256
fn kernel(x: Ptr<f32>, index: Ptr<i64>, y: PtrMut<f32>, rows: usize, columns: usize) {
    let column = arange(0, 256);
    let mask = column < columns;
    let mut digest = zeros::<f32>([256]);
    for i in 0..rows {
        let row = load(index + i * 7 % 16);
        digest = digest * 0.5 + load(x + row * columns + column, mask = mask);
    }
    store(y + column, digest, mask = mask);
}

fn reference(x: Ptr<f32>, index: Ptr<i64>, y: PtrMut<f32>, rows: usize, columns: usize) {
    for column in 0..columns {
        let mut digest = 0.0f32;
        for i in 0..rows {
            digest = digest * 0.5 + load(x + load(index + i * 7 % 16) * columns + column);
        }
        store(y + column, digest);
    }
}
