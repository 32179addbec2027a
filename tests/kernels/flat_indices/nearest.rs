//! Planes are enlarged by a whole factor: neighbours that share a quotient by the factor, rows that runs do not cross, and rows that they do.
//! x: any 2100
//! y: zeros 4096
//! h: 8, 8, 7, 1, 16
//! w: 8, 16, 9, 5, 32
//! s: 2, 1, 3, 4, 2
//! n: 1024, 512, 4095, 80, 4096
//! grid: 4
fn kernel(x: Ptr<f32>, y: PtrMut<f32>, h: usize, w: usize, s: usize, n: usize) {
    let o = program_id(0) * 1024 + arange(0, 1024);
    let mask = o < n;
    let (ow, oh) = (w * s, h * s);
    let (column, row, plane) = (o % ow, o / ow % oh, o / (ow * oh));
    store(y + o, load(x + plane * (h * w) + row / s * w + column / s, mask = mask), mask = mask);
}

fn reference(x: Ptr<f32>, y: PtrMut<f32>, h: usize, w: usize, s: usize, n: usize) {
    for i in 0..1024 {
        let o = program_id(0) * 1024 + i;
        if o < n {
            let ow = w * s;
            let oh = h * s;
            let mut at = o / (ow * oh) * h;
            at = (at + o / ow % oh / s) * w;
            store(y + o, load(x + at + o % ow / s));
        }
    }
}
