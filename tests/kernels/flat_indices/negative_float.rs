//! A coordinate is cast from a float that may be negative, and clamped at the end only.
//! x: any 100
//! y: zeros 1024
//! d: 64, 40, 7
fn kernel(x: Ptr<f32>, y: PtrMut<f32>, d: usize) {
    let o = arange(0, 1024);
    let c = min(((o % d) as f32 - 5.5) as i64, d - 1);
    store(y + o, load(x + c));
}

fn reference(x: Ptr<f32>, y: PtrMut<f32>, d: usize) {
    for o in 0..1024 {
        let c = min(((o % d) as f32 - 5.5) as i64, d - 1);
        store(y + o, load(x + c));
    }
}
