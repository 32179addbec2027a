//! One of two stores has a mask whose end is loaded: the other one stores where the first tile has no element.
//! lengths: whole 8
//! x: any 1024
//! y: zeros 8192
//! z: zeros 8192
//! m: 1024, 1000
//! grid: 8
fn kernel(lengths: Ptr<i64>, x: Ptr<f32>, y: PtrMut<f32>, z: PtrMut<f32>, m: usize) {
    let n = load(lengths + program_id(0)) * 100;
    let i = arange(0, 1024);
    let v = load(x + i);
    store(y + program_id(0) * 1024 + i, v, mask = i + 512 < n);
    store(z + program_id(0) * 1024 + i, v * 2.0, mask = i < m);
}

fn reference(lengths: Ptr<i64>, x: Ptr<f32>, y: PtrMut<f32>, z: PtrMut<f32>, m: usize) {
    let n = load(lengths + program_id(0)) * 100;
    for i in 0..1024 {
        let v = load(x + i);
        if i + 512 < n {
            store(y + program_id(0) * 1024 + i, v);
        }
        if i < m {
            store(z + program_id(0) * 1024 + i, v * 2.0);
        }
    }
}
