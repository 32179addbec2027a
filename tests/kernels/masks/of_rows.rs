//! Rows whose length is no multiple of an access: a tile that is full begins anywhere.
//! x: any 900
//! y: zeros 900
//! n: 61, 64, 67
//! grid: 13
fn kernel(x: Ptr<f32>, y: PtrMut<f32>, n: usize) {
    let lanes = arange(0, 128);
    let row = program_id(0) * n;
    store(y + row + lanes, load(x + row + lanes, mask = lanes < n), mask = lanes < n);
}

fn reference(x: Ptr<f32>, y: PtrMut<f32>, n: usize) {
    for i in 0..n {
        store(y + program_id(0) * n + i, load(x + program_id(0) * n + i));
    }
}
