//! The sum of a tile is used behind the store of it, also if the tile has no element.
//! lengths: whole 8
//! x: whole 1024
//! y: zeros 8192
//! z: whole 8
//! grid: 8
fn kernel(lengths: Ptr<i64>, x: Ptr<f32>, y: PtrMut<f32>, z: PtrMut<f32>) {
    let n = load(lengths + program_id(0)) * 100;
    let i = arange(0, 1024);
    let v = load(x + i, mask = i + 512 < n);
    store(y + program_id(0) * 1024 + i, v, mask = i + 512 < n);
    store(z + program_id(0), sum(v));
}

fn reference(lengths: Ptr<i64>, x: Ptr<f32>, y: PtrMut<f32>, z: PtrMut<f32>) {
    let n = load(lengths + program_id(0)) * 100;
    let mut total = 0f32;
    for i in 0..1024 {
        if i + 512 < n {
            store(y + program_id(0) * 1024 + i, load(x + i));
            total += load(x + i);
        }
    }
    store(z + program_id(0), total);
}
