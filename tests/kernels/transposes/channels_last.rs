//! Channels move to the end: tiles are square where channels and pixels are multiples of 32, long where only one is, and elsewhere the kernel runs as written. Pixels are taken apart and put together again.
//! x: any 8192
//! y: zeros 8192
//! c: 64, 32, 16, 64, 32, 5, 1, 128
//! h: 8, 6, 8, 4, 3, 6, 1, 4
//! w: 8, 16, 8, 4, 11, 7, 1, 16
//! n: 8192, 6144, 4096, 4096, 4000, 3570, 1, 8190
//! grid: 8
fn kernel(x: Ptr<bf16>, y: PtrMut<bf16>, c: usize, h: usize, w: usize, n: usize) {
    let o = program_id(0) * 1024 + arange(0, 1024);
    let mask = o < n;
    let (channel, column, row, image) = (o % c, o / c % w, o / (c * w) % h, o / (c * w * h));
    let from = ((image * c + channel) * h + row) * w + column;
    store(y + o, load(x + from, mask = mask), mask = mask);
}

fn reference(x: Ptr<bf16>, y: PtrMut<bf16>, c: usize, h: usize, w: usize, n: usize) {
    for i in 0..1024 {
        let o = program_id(0) * 1024 + i;
        if o < n {
            let from = (o / (c * w * h) * c + o % c) * h * w + o / c % (h * w);
            store(y + o, load(x + from));
        }
    }
}
