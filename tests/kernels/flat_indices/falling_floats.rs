//! Coordinates that fall as the index rises: the first ones are behind the tensor.
//! x: any 1024
//! y: zeros 2048
//! w: 512, 60
//! grid: 2
fn kernel(x: Ptr<f32>, y: PtrMut<f32>, w: usize) {
    let o = program_id(0) * 1024 + arange(0, 1024);
    let falling = ((o % w) as f32 * -0.5 + 1100.0) as i64;
    store(y + o, load(x + (o / w + falling)));
}

fn reference(x: Ptr<f32>, y: PtrMut<f32>, w: usize) {
    for i in 0..1024 {
        let o = program_id(0) * 1024 + i;
        let falling = ((o % w) as f32 * -0.5 + 1100.0) as i64;
        store(y + o, load(x + o / w + falling));
    }
}
