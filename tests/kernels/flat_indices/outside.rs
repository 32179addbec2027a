//! Indices that leave their tensor in front and behind: nothing is read or stored there.
//! x: any 500
//! y: zeros 700
//! d: 16, 64, 7, 96
//! shift: 0, -100, 300, 5
//! grid: 2
fn kernel(x: Ptr<f32>, y: PtrMut<f32>, d: usize, shift: usize) {
    let o = program_id(0) * 512 + arange(0, 512);
    let at = (o / d) * d + (d - 1 - o % d) + shift;
    store(y + at, load(x + at, other = 1.0));
}

fn reference(x: Ptr<f32>, y: PtrMut<f32>, d: usize, shift: usize) {
    for i in 0..512 {
        let o = program_id(0) * 512 + i;
        let at = (o / d) * d + (d - 1 - o % d) + shift;
        store(y + at, load(x + at, other = 1.0));
    }
}
