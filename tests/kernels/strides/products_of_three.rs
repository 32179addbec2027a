//! Tiles of indices are multiplied by two arguments, so the start of each tile is a product of three scalars.
//! x: any 4100
//! y: zeros 1024
//! a: 1, 2, 3, 5
//! b: 1, 3, 2, 0
//! grid: 4
fn kernel(x: Ptr<i32>, y: PtrMut<i32>, a: usize, b: usize) {
    let lanes = arange(0, 256);
    let at = (program_id(0) + lanes) * a * b;
    store(y + program_id(0) * 256 + lanes, load(x + at));
}

fn reference(x: Ptr<i32>, y: PtrMut<i32>, a: usize, b: usize) {
    for i in 0..256 {
        let mut at = program_id(0) + i;
        at = at * a;
        at = at * b;
        store(y + program_id(0) * 256 + i, load(x + at));
    }
}
