//! Constant extents: the tests of the tiles are constants, too.
//! x: any 8192
//! y: zeros 8192
//! n: 8192, 8000, 4096
//! grid: 8
fn kernel(x: Ptr<i8>, y: PtrMut<i8>, n: usize) {
    let o = program_id(0) * 1024 + arange(0, 1024);
    let mask = o < n;
    let (channel, pixel, image) = (o % 64, o / 64 % 32, o / 2048);
    store(y + o, load(x + (image * 64 + channel) * 32 + pixel, mask = mask), mask = mask);
}

fn reference(x: Ptr<i8>, y: PtrMut<i8>, n: usize) {
    for e in 0..1024 {
        let o = program_id(0) * 1024 + e;
        if o < n {
            store(y + o, load(x + (o / 2048 * 64 + o % 64) * 32 + o / 64 % 32));
        }
    }
}
