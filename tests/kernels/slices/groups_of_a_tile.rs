//! Groups of a tile that is not full are reduced and scanned in slices, or by CTAs of a cluster that have whole groups.
//! x: whole 4096
//! y: zeros 4096
//! z: zeros 64
//! w: zeros 4096
//! n: 4096, 4095, 2100, 2048, 64, 1, 0, 4096, 4095, 2100, 2048, 64, 1, 0
//! ctas: 1, 1, 1, 1, 1, 1, 1, 8, 8, 8, 8, 8, 8, 8
//! grid: 2
fn kernel(x: Ptr<f32>, y: PtrMut<f32>, z: PtrMut<f32>, w: PtrMut<f32>, n: usize) {
    let o = program_id(0) * 2048 + arange(0, 2048);
    let groups = reshape(load(x + o, mask = o < n), [32, 64]);
    let largest = max(abs(groups), axis = 1);
    store(y + o, reshape(groups - largest.col(), [2048]), mask = o < n);
    let group = program_id(0) * 32 + arange(64, 96) - 64;
    store(z + group, largest, mask = group < cdiv(n, 64));
    store(w + o, reshape(cumsum(groups, axis = 1), [2048]), mask = o < n);
}

fn reference(x: Ptr<f32>, y: PtrMut<f32>, z: PtrMut<f32>, w: PtrMut<f32>, n: usize) {
    for g in 0..32 {
        let group = program_id(0) * 32 + g;
        let mut largest: f32 = 0.0;
        let mut total: f32 = 0.0;
        for i in 0..64 {
            let o = group * 64 + i;
            if o < n {
                let v = load(x + o);
                largest = max(largest, abs(v));
                total += v;
                store(w + o, total);
            }
        }
        for i in 0..64 {
            let o = group * 64 + i;
            if o < n {
                store(y + o, load(x + o) - largest);
            }
        }
        if group < cdiv(n, 64) {
            store(z + group, largest);
        }
    }
}
