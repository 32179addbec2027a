//! A second tensor has an element for each position in a program, and programs that overlap: its elements belong to the program.
//! x: any 4096
//! z: any 3072
//! y: zeros 4096
//! rows: 64, 32
//! columns: 64, 128
//! grid: 4
fn kernel(x: Ptr<f32>, z: Ptr<f32>, y: PtrMut<f32>, rows: usize, columns: usize) {
    let o = program_id(0) * 1024 + arange(0, 1024);
    let v = load(x + o % rows * columns + o / rows);
    store(y + o, v - load(z + program_id(0) * 512 + arange(0, 1024)));
}

fn reference(x: Ptr<f32>, z: Ptr<f32>, y: PtrMut<f32>, rows: usize, columns: usize) {
    for i in 0..1024 {
        let o = program_id(0) * 1024 + i;
        store(y + o, load(x + o % rows * columns + o / rows) - load(z + program_id(0) * 512 + i));
    }
}
