//! Pixels of four channels of a byte: pairs of pairs. The order of the accesses is not that of the channels.
//! x: any 4096
//! y: zeros 4096
//! n: 1024, 512, 1000, 3
//! grid: 2
fn kernel(x: Ptr<i8>, y: PtrMut<i8>, n: usize) {
    let i = program_id(0) * 512 + arange(0, 512);
    let mask = i < n;
    let at = 4 * i;
    let (a, r) = (load(x + at + 3, mask = mask), load(x + at, mask = mask));
    let (b, g) = (load(x + at + 2, mask = mask), load(x + at + 1, mask = mask));
    store(y + at + 1, r, mask = mask);
    store(y + at, a, mask = mask);
    store(y + at + 3, g, mask = mask);
    store(y + at + 2, b - 1, mask = mask);
}

fn reference(x: Ptr<i8>, y: PtrMut<i8>, n: usize) {
    for i in 0..n {
        store(y + 4 * i, load(x + 4 * i + 3));
        store(y + 4 * i + 1, load(x + 4 * i));
        store(y + 4 * i + 2, load(x + 4 * i + 2) - 1);
        store(y + 4 * i + 3, load(x + 4 * i + 1));
    }
}
