//! A mask excludes the elements of a tile whose quotients leave a tensor, but not every access has the mask.
//! x: any 80
//! y: zeros 2048
//! z: zeros 2048
//! w: 20, 16, 30, 20
//! n: 1600, 1280, 2048, 1610
//! grid: 2
fn kernel(x: Ptr<f32>, y: PtrMut<f32>, z: PtrMut<f32>, w: usize, n: usize) {
    let o = program_id(0) * 1024 + arange(0, 1024);
    let v = load(x + o / w);
    store(y + o, v);
    store(z + o, v, mask = o < n);
}

fn reference(x: Ptr<f32>, y: PtrMut<f32>, z: PtrMut<f32>, w: usize, n: usize) {
    for i in 0..1024 {
        let o = program_id(0) * 1024 + i;
        store(y + o, load(x + o / w));
        if o < n {
            store(z + o, load(x + o / w));
        }
    }
}
