//! Each program stores the elements before an end of its own. The elements behind it belong to the next program.
//! x: any 8192
//! y: zeros 8192
//! z: zeros 8192
//! n: 128, 132, 129
//! grid: 60
fn kernel(x: Ptr<f32>, y: PtrMut<f32>, z: PtrMut<u8>, n: usize) {
    let row = program_id(0);
    let column = arange(0, 256);
    let end = row * 3 % (n + 1);
    let v = load(x + row * n + column, mask = column < end, other = 1.0);
    store(y + row * n + column, v * 2.0, mask = column < end);
    store(z + row * n + column, (column + row) as u8, mask = column < end);
}

fn reference(x: Ptr<f32>, y: PtrMut<f32>, z: PtrMut<u8>, n: usize) {
    let row = program_id(0);
    for i in 0..row * 3 % (n + 1) {
        store(y + row * n + i, load(x + row * n + i) * 2.0);
        store(z + row * n + i, (i + row) as u8);
    }
}
