//! The number of the program has another use, so its elements must stay in it.
//! x: any 4096
//! y: zeros 4096
//! rows: 64, 32
//! columns: 64, 128
//! grid: 4
fn kernel(x: Ptr<f32>, y: PtrMut<f32>, rows: usize, columns: usize) {
    let o = program_id(0) * 1024 + arange(0, 1024);
    let v = load(x + o % rows * columns + o / rows);
    store(y + o, select(program_id(0) % 2 == 0, v, 0.0 - v));
}

fn reference(x: Ptr<f32>, y: PtrMut<f32>, rows: usize, columns: usize) {
    for i in 0..1024 {
        let o = program_id(0) * 1024 + i;
        let v = load(x + o % rows * columns + o / rows);
        store(y + o, select(program_id(0) % 2 == 0, v, 0.0 - v));
    }
}
