//! Rows at any distance, in steps that are an argument. All of them are in the tensor, or only some: the first ones, the last ones, or, where a product wraps,
//! the first and the last.
//! x: whole 1024
//! y: zeros 64
//! first: 0, 1, 0, -3, 0, 0, 0, 0, 15, 3, 0, 0, -1, 5
//! rows: 16, 16, 17, 16, 3, 33554433, 9, 12, -5, 4, 200, 16, 4194304, 4194303
//! step: 1, 3, 2, 4, 0, 16777216, 2, 2, -1, 1, 7, 1, 2097152, 9223372036854775807
//! stride: 64, 64, 64, 64, 64, 549755813888, 4611686018427387904, 0, -64, 63, 5, -64, 1, 0
//! warps: 1
fn kernel(x: Ptr<f32>, y: PtrMut<f32>, first: i64, rows: i64, step: i64, stride: i64) {
    let j = arange(0, 64);
    let mut total = zeros::<f32>([64]);
    for row in range(first, rows, step) {
        total += load(x + row * stride + j);
    }
    store(y + j, total);
}

fn reference(x: Ptr<f32>, y: PtrMut<f32>, first: i64, rows: i64, step: i64, stride: i64) {
    for j in 0..64 {
        let mut total = 0.0f32;
        for row in range(first, rows, step) {
            total += load(x + row * stride + j);
        }
        store(y + j, total);
    }
}
