//! Planes that are interleaved: the columns of a row are taken apart by a factor, of which a run is a multiple, or which is one of a run.
//! x: any 4100
//! y: zeros 4096
//! h: 4, 2, 3, 1, 16
//! w: 16, 8, 9, 32, 32
//! s: 2, 8, 3, 4, 1
//! n: 1024, 2048, 4095, 2048, 4096
//! grid: 4
fn kernel(x: Ptr<f32>, y: PtrMut<f32>, h: usize, w: usize, s: usize, n: usize) {
    let o = program_id(0) * 1024 + arange(0, 1024);
    let mask = o < n;
    let (ow, oh) = (w * s, h * s);
    let (column, row, channel) = (o % ow, o / ow % oh, o / (ow * oh));
    let plane = (channel * s + row % s) * s + column % s;
    store(y + o, load(x + (plane * h + row / s) * w + column / s, mask = mask), mask = mask);
}

fn reference(x: Ptr<f32>, y: PtrMut<f32>, h: usize, w: usize, s: usize, n: usize) {
    for i in 0..1024 {
        let o = program_id(0) * 1024 + i;
        if o < n {
            let column = o % (w * s);
            let row = o / (w * s) % (h * s);
            let mut plane = o / (w * s * h * s) * s + row % s;
            plane = plane * s + column % s;
            store(y + o, load(x + (plane * h + row / s) * w + column / s));
        }
    }
}
