//! A scalar is loaded and then stored; a late thread must not load the new value.
//! y: whole 8
//! z: zeros 1024
//! grid: 4
fn kernel(y: PtrMut<i32>, z: PtrMut<i32>) {
    let lanes = arange(0, 256);
    let v = load(y + program_id(0));
    store(y + program_id(0), v + 1);
    store(z + program_id(0) * 256 + lanes, v);
}

fn reference(y: PtrMut<i32>, z: PtrMut<i32>) {
    let v = load(y + program_id(0));
    for i in 0..256 { store(z + program_id(0) * 256 + i, v); }
    store(y + program_id(0), v + 1);
}
