//! The result of a cast between integers of 8 and 16 bits is widened in registers, before any store truncates it.
//! x: any 300
//! y: zeros 300
//! z: zeros 300
//! n: 1, 255, 300
fn kernel(x: Ptr<i8>, y: PtrMut<u32>, z: PtrMut<i32>, n: usize) {
    let at = arange(0, 512);
    let v = load(x + at, mask = at < n);
    store(y + at, (v as u16) as u32 / 7, mask = at < n);
    store(z + at, ((v as u8) as i16) as i32 * 3, mask = at < n);
}

fn reference(x: Ptr<i8>, y: PtrMut<u32>, z: PtrMut<i32>, n: usize) {
    for i in 0..n {
        let v = load(x + i) as i64;
        store(y + i, ((v & 0xffff) / 7) as u32);
        store(z + i, ((v & 0xff) * 3) as i32);
    }
}
