//! The divisor of an index that selects a weight is a constant that is no multiple of a run.
//! x: whole 4100
//! w: whole 112
//! y: zeros 4100
//! n: 4096, 4099, 2048, 37
//! grid: 2
fn kernel(x: Ptr<f16>, w: Ptr<f16>, y: PtrMut<f32>, n: usize) {
    let at = program_id(0) * 2048 + arange(0, 2048);
    let mask = at < n;
    let weight = load(w + at / 37, mask = mask) as f32;
    store(y + at, load(x + at, mask = mask) as f32 * weight, mask = mask);
}

fn reference(x: Ptr<f16>, w: Ptr<f16>, y: PtrMut<f32>, n: usize) {
    for at in program_id(0) * 2048..min(program_id(0) * 2048 + 2048, n) {
        store(y + at, load(x + at) as f32 * load(w + at / 37) as f32);
    }
}
