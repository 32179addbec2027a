//! Elements and statistics of groups are stored up to different ends: slices behind one end still store up to the other.
//! x: whole 4096
//! y: zeros 4096
//! z: zeros 64
//! n: 4000, 2100, 700, 64, 1, 0, 2100
//! m: 64, 33, 20, 40, 0, 7, 3
//! grid: 2
fn kernel(x: Ptr<f32>, y: PtrMut<f32>, z: PtrMut<f32>, n: usize, m: usize) {
    let o = program_id(0) * 2048 + arange(0, 2048);
    let groups = reshape(load(x + o, mask = o < 4000), [32, 64]);
    let largest = max(groups, axis = 1);
    store(y + o, reshape(groups - largest.col(), [2048]), mask = o < n);
    let group = program_id(0) * 32 + arange(0, 32);
    store(z + group, largest, mask = group < m);
}

fn reference(x: Ptr<f32>, y: PtrMut<f32>, z: PtrMut<f32>, n: usize, m: usize) {
    for g in 0..32 {
        let group = program_id(0) * 32 + g;
        let mut largest: f32 = f32::NEG_INFINITY;
        for i in 0..64 {
            let o = group * 64 + i;
            let v = if o < 4000 { load(x + o) } else { 0.0 };
            largest = max(largest, v);
        }
        for i in 0..64 {
            let o = group * 64 + i;
            if o < n {
                let v = if o < 4000 { load(x + o) } else { 0.0 };
                store(y + o, v - largest);
            }
        }
        if group < m {
            store(z + group, largest);
        }
    }
}
