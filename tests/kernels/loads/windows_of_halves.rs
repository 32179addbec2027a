//! The maximum of a window of elements that are loaded one by one, each with a mask.
//! x: any 4100
//! y: zeros 4096
//! n: 4096, 1000, 3
//! grid: 8
fn kernel(x: Ptr<f16>, y: PtrMut<f32>, n: usize) {
    let at = program_id(0) * 512 + arange(0, 512);
    let mut best = full::<f32>([512], f32::NEG_INFINITY);
    for i in static_range(0, 5) {
        let v = load(x + at + i, mask = at + i < n, other = f32::NEG_INFINITY) as f32;
        best = max(best, v);
    }
    store(y + at, best);
}

fn reference(x: Ptr<f16>, y: PtrMut<f32>, n: usize) {
    for j in 0..512 {
        let at = program_id(0) * 512 + j;
        let mut best = f32::NEG_INFINITY;
        for i in 0..5 {
            let mut v = f32::NEG_INFINITY;
            if at + i < n {
                v = load(x + at + i) as f32;
            }
            best = max(best, v);
        }
        store(y + at, best);
    }
}
