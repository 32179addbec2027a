//! The sign of one half and the magnitude of another, which has a sign of its own.
//! x: any 200
//! s: any 200
//! y: zeros 200
//! n: 200, 64
fn kernel(x: Ptr<f16>, s: Ptr<f16>, y: PtrMut<u16>, n: usize) {
    let at = arange(0, 256);
    store(y + at, bitcast::<u16>(copysign(load(x + at), load(s + at))), mask = at < n);
}

fn reference(x: Ptr<f16>, s: Ptr<f16>, y: PtrMut<u16>, n: usize) {
    for i in 0..n {
        store(y + i, (bitcast::<u16>(load(x + i)) & 0x7fff) | (bitcast::<u16>(load(s + i)) & 0x8000));
    }
}
