//! Floats become narrow integers that are stored one by one, because rows begin at any element. One becomes a wider integer behind that.
//! x: any 3000
//! a: zeros 3000
//! b: zeros 3000
//! c: zeros 3000
//! d: zeros 3000
//! e: zeros 3000
//! n: 37, 513, 600, 1
//! grid: 5
fn kernel(x: Ptr<f32>, a: PtrMut<i8>, b: PtrMut<u8>, c: PtrMut<i16>, d: PtrMut<u16>, e: PtrMut<i16>, n: usize) {
    let column = arange(0, 1024);
    let mask = column < n;
    let at = program_id(0) * n + column;
    let v = load(x + at, mask = mask);
    store(a + at, v as i8, mask = mask);
    store(b + at, v as u8, mask = mask);
    store(c + at, v as i16, mask = mask);
    store(d + at, v as u16, mask = mask);
    store(e + at, v as i8 as i16, mask = mask);
}

fn reference(x: Ptr<f32>, a: PtrMut<i8>, b: PtrMut<u8>, c: PtrMut<i16>, d: PtrMut<u16>, e: PtrMut<i16>, n: usize) {
    for column in 0..n {
        let at = program_id(0) * n + column;
        let v = load(x + at);
        store(a + at, v as i8);
        store(b + at, v as u8);
        store(c + at, v as i16);
        store(d + at, v as u16);
        store(e + at, v as i8 as i16);
    }
}
