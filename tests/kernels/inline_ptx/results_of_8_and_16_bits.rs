//! The text leaves 8-bit results out of range in their 32-bit registers, and gives negative 16-bit results; the kernel then widens them.
//! x: any 300
//! y: zeros 300
//! z: zeros 300
//! w: zeros 300
//! n: 1, 100, 300
fn kernel(x: Ptr<u8>, y: PtrMut<u32>, z: PtrMut<i32>, w: PtrMut<i32>, n: usize) {
    let at = arange(0, 512);
    let v = load(x + at, mask = at < n);
    let sum = inline_ptx!("add.s32 {d}, {a}, {a};", d: u8, a = v, cpu = |a| a + a);
    let signed = inline_ptx!("shl.b32 {d}, {a}, 1;", d: i8, a = v, cpu = |a| (a + a) as i8);
    let short = inline_ptx!("neg.s16 {d}, {a};", d: i16, a = v as i16, cpu = |a| -a);
    store(y + at, sum as u32, mask = at < n);
    store(z + at, signed as i32 / 2, mask = at < n);
    store(w + at, short as i32 / 2, mask = at < n);
}

fn reference(x: Ptr<u8>, y: PtrMut<u32>, z: PtrMut<i32>, w: PtrMut<i32>, n: usize) {
    for i in 0..n {
        let v = load(x + i) as i32;
        let twice = 2 * v & 255;
        store(y + i, twice as u32);
        store(z + i, if twice < 128 { twice / 2 } else { (twice - 256) / 2 });
        store(w + i, -v / 2);
    }
}
