//! A loop over rows: the end moves with the row, and the loads run ahead.
//! x: any 4096
//! y: zeros 4096
//! rows: 32, 31, 1
//! grid: 3
fn kernel(x: Ptr<f32>, y: PtrMut<f32>, rows: usize) {
    let column = arange(0, 128);
    for row in range(program_id(0), rows, num_programs(0)) {
        let v = load(x + row * 128 + column, mask = column <= row * 4 + 1, other = -1.0);
        store(y + row * 128 + column, v * 2.0, mask = column <= row * 4 + 2);
    }
}

fn reference(x: Ptr<f32>, y: PtrMut<f32>, rows: usize) {
    for row in range(program_id(0), rows, num_programs(0)) {
        for i in 0..128 {
            if i <= row * 4 + 2 {
                let v = if i <= row * 4 + 1 { load(x + row * 128 + i) } else { -1.0 };
                store(y + row * 128 + i, v * 2.0);
            }
        }
    }
}
