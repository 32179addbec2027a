//! A run of neighbours crosses at most one multiple of an argument, and several multiples of a constant.
//! x: whole 2100
//! w: whole 300
//! t: whole 3
//! y: zeros 2100
//! n: 2048, 2099
//! length: 9, 37
//! grid: 3
fn kernel(x: Ptr<bf16>, w: Ptr<f32>, t: Ptr<f32>, y: PtrMut<f32>, n: usize, length: usize) {
    let at = program_id(0) * 1024 + arange(0, 1024);
    let mask = at < n;
    let weight = load(w + at / length, mask = mask) + load(t + at % 3, mask = mask) + load(w + at % length, mask = mask);
    store(y + at, load(x + at, mask = mask) as f32 * weight, mask = mask);
}

fn reference(x: Ptr<bf16>, w: Ptr<f32>, t: Ptr<f32>, y: PtrMut<f32>, n: usize, length: usize) {
    for at in program_id(0) * 1024..min(program_id(0) * 1024 + 1024, n) {
        let weight = load(w + at / length) + load(t + at % 3) + load(w + at % length);
        store(y + at, load(x + at) as f32 * weight);
    }
}
