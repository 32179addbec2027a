//! The average of four neighbours: rows begin at even indices if their length is even, whatever the number of rows is.
//! x: whole 8000
//! y: zeros 2000
//! n: 1024, 1000, 990, 1024, 1000
//! h: 16, 25, 20, 7, 2
//! w: 16, 20, 11, 66, 100
//! oh: 8, 12, 10, 3, 1
//! ow: 8, 10, 5, 33, 50
//! grid: 2
fn kernel(x: Ptr<bf16>, y: PtrMut<f32>, n: usize, h: usize, w: usize, oh: usize, ow: usize) {
    let o = program_id(0) * 512 + arange(0, 512);
    let (column, row, plane) = (o % ow, o / ow % oh, o / (ow * oh));
    let mut total = zeros::<f32>([512]);
    for i in static_range(0, 2) {
        for j in static_range(0, 2) {
            total += load(x + (plane * h + row * 2 + i) * w + column * 2 + j, mask = o < n) as f32;
        }
    }
    store(y + o, total, mask = o < n);
}

fn reference(x: Ptr<bf16>, y: PtrMut<f32>, n: usize, h: usize, w: usize, oh: usize, ow: usize) {
    for o in 0..n {
        let at = (o / (ow * oh) * h + o / ow % oh * 2) * w + o % ow * 2;
        store(y + o, load(x + at) as f32 + load(x + at + 1) as f32 + load(x + at + w) as f32 + load(x + at + w + 1) as f32);
    }
}
