//! The bits of a half become an `i16`, and bytes are shifted to the left; both results are widened before they are stored.
//! h: any 300
//! u: any 300
//! y: zeros 300
//! z: zeros 300
//! w: zeros 300
//! n: 0, 3, 7, 8, 40
fn kernel(h: Ptr<f16>, u: Ptr<u8>, y: PtrMut<i32>, z: PtrMut<u32>, w: PtrMut<i64>, n: usize) {
    let at = arange(0, 300);
    let (v, b) = (load(h + at), load(u + at));
    store(y + at, bitcast::<i16>(v) as i32 / 3);
    store(z + at, (b << 3) as u32 / 3);
    store(w + at, ((b as i8) << (n as i8)) as i64 / 3);
}

fn reference(h: Ptr<f16>, u: Ptr<u8>, y: PtrMut<i32>, z: PtrMut<u32>, w: PtrMut<i64>, n: usize) {
    for i in 0..300 {
        let bits = bitcast::<u16>(load(h + i)) as i32;
        store(y + i, (if bits < 32768 { bits } else { bits - 65536 }) / 3);
        let b = load(u + i) as i64;
        store(z + i, (8 * b % 256) as u32 / 3);
        let mut shifted = b;
        for iteration in 0..n {
            shifted = 2 * shifted % 256;
        }
        store(w + i, (if shifted < 128 { shifted } else { shifted - 256 }) / 3);
    }
}
