//! A loop over rows loads a number for each row, and the numbers may end before the rows.
//! x: whole 20480
//! s: whole 17
//! t: whole 40
//! y: zeros 20480
//! rows: 20, 17, 3, 0
//! by: 1, 2, 1, 1
//! grid: 2
fn kernel(x: Ptr<f16>, s: Ptr<f32>, t: Ptr<f16>, y: PtrMut<f32>, rows: usize, by: usize) {
    let column = arange(0, 1024);
    let mut total = zeros::<f32>([1024]);
    for row in range(program_id(0), rows, by * num_programs(0), num_stages = 4) {
        let v = load(x + row * 1024 + column) as f32;
        total += v * load(s + row) + load(t + row * 2) as f32;
        store(y + row * 1024 + column, total);
    }
}

fn reference(x: Ptr<f16>, s: Ptr<f32>, t: Ptr<f16>, y: PtrMut<f32>, rows: usize, by: usize) {
    for column in 0..1024 {
        let mut total = 0.0f32;
        for row in range(program_id(0), rows, by * num_programs(0)) {
            let mut scale = 0.0f32;
            if row < 17 {
                scale = load(s + row);
            }
            let mut offset = 0.0f32;
            if row * 2 < 40 {
                offset = load(t + row * 2) as f32;
            }
            total += load(x + row * 1024 + column) as f32 * scale + offset;
            store(y + row * 1024 + column, total);
        }
    }
}
