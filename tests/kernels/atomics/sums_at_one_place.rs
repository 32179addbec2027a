//! All rows of a tile are added to one row: the threads that hold an element do so one after the other.
//! x: whole 2048
//! y: zeros 128
//! grid: 2
fn kernel(x: Ptr<bf16>, y: PtrMut<bf16>) {
    let (row, column) = (arange(0, 8).col(), arange(0, 128).row());
    let v = load(x + program_id(0) * 1024 + row * 128 + column);
    atomic_add(y + row * 0 + column, v, sem = "relaxed");
}

fn reference(x: Ptr<bf16>, y: PtrMut<bf16>) {
    // One program, because the sums of several would race.
    for p in 0..2 * (program_id(0) == 0) as usize {
        for i in 0..1024 {
            let at = i % 128;
            store(y + at, load(y + at) + load(x + p * 1024 + i));
        }
    }
}
