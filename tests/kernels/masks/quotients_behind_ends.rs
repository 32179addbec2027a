//! The mask of a row ends where its program's number says. Quotients of the row by one number are computed once behind the end: exact ones, and rounded ones.
//! x: whole 3000
//! y: zeros 8192
//! z: zeros 8192
//! grid: 4
//! step: 0, 1, 37, 97, 256, 700, -3
//! first: 5, 0, 20, 700, 31, 0, 8
//! by: 3, 92, 98, 0, -7, 91, 1
fn kernel(x: Ptr<bf16>, y: PtrMut<f32>, z: PtrMut<bf16>, step: usize, first: usize, by: i32) {
    let d = if by > 95 { 1e38 } else if by > 90 { 1e-30 } else { by as f32 * 0.25 };
    let row = program_id(0);
    let column = arange(0, 1024);
    let v = load(x + row * 600 + column, mask = column <= row * step + first, other = -7.0) as f32;
    let w = (v + 1.0) * (v - 3.0) + v * v - (v + 9.0) * (v - 1.0);
    let q = w / d;
    store(y + row * 1024 + column, q);
    store(y + (row + 4) * 1024 + column, (w * w) / d);
    store(z + row * 1024 + column, q as bf16);
    store(z + (row + 4) * 1024 + column, ((w - 5.0) / d) as bf16);
}

fn reference(x: Ptr<bf16>, y: PtrMut<f32>, z: PtrMut<bf16>, step: usize, first: usize, by: i32) {
    let d = if by > 95 { 1e38 } else if by > 90 { 1e-30 } else { by as f32 * 0.25 };
    for row in 0..4 {
        for j in 0..1024 {
            let v = if j <= row * step + first { load(x + row * 600 + j) as f32 } else { -7.0 };
            let w = (v + 1.0) * (v - 3.0) + v * v - (v + 9.0) * (v - 1.0);
            store(y + row * 1024 + j, w / d);
            store(y + (row + 4) * 1024 + j, (w * w) / d);
            store(z + row * 1024 + j, (w / d) as bf16);
            store(z + (row + 4) * 1024 + j, ((w - 5.0) / d) as bf16);
        }
    }
}
