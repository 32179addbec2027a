//! Channels move to the front, and the grid has programs behind the last element, or too few of them.
//! x: any 16384
//! y: zeros 16384
//! c: 64, 32, 16, 64, 32, 5, 1, 64
//! h: 8, 6, 8, 4, 3, 6, 1, 8
//! w: 8, 16, 8, 4, 11, 7, 1, 16
//! n: 8192, 6144, 4096, 4096, 4000, 3570, 1, 16384
//! grid: 9, 6, 4, 5, 5, 4, 3, 11
fn kernel(x: Ptr<bf16>, y: PtrMut<bf16>, c: usize, h: usize, w: usize, n: usize) {
    let o = program_id(0) * 1024 + arange(0, 1024);
    let mask = o < n;
    let (column, row, channel, image) = (o % w, o / w % h, o / (w * h) % c, o / (w * h * c));
    let from = ((image * h + row) * w + column) * c + channel;
    store(y + o, load(x + from, mask = mask), mask = mask);
}

fn reference(x: Ptr<bf16>, y: PtrMut<bf16>, c: usize, h: usize, w: usize, n: usize) {
    for i in 0..1024 {
        let o = program_id(0) * 1024 + i;
        if o < n {
            let from = (o / (c * w * h) * (h * w) + o % (h * w)) * c + o / (w * h) % c;
            store(y + o, load(x + from));
        }
    }
}
