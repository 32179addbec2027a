//! Casts of floats that saturate and are packed: into neighbouring elements, after a cast to a wider integer, and used otherwise too.
//! x: any 1024
//! a: zeros 1024
//! b: zeros 1024
//! c: zeros 1024
//! d: zeros 1024
//! e: zeros 1024
//! f: zeros 1024
//! g: zeros 1024
fn kernel(x: Ptr<f32>, a: PtrMut<i8>, b: PtrMut<u8>, c: PtrMut<i16>, d: PtrMut<u16>, e: PtrMut<i16>, f: PtrMut<u16>, g: PtrMut<i32>) {
    let at = arange(0, 1024);
    let v = load(x + at);
    let near = (at - 512) as f32 / 3.0;
    let w = select(at % 3 == 0, near, select(at % 3 == 1, near * 300.0, v));
    store(a + at, rint(w) as i8);
    store(b + at, w as u8);
    store(c + at, rint(w) as i16);
    store(d + at, floor(w) as u16);
    store(e + at, w as i8 as i16);
    store(f + at, w as u8 as u16);
    store(g + at, rint(w) as i8 as i32 + w as u16 as i32);
}

fn reference(x: Ptr<f32>, a: PtrMut<i8>, b: PtrMut<u8>, c: PtrMut<i16>, d: PtrMut<u16>, e: PtrMut<i16>, f: PtrMut<u16>, g: PtrMut<i32>) {
    for i in 0..1024 {
        let near = (i - 512) as f32 / 3.0;
        let w = select(i % 3 == 0, near, select(i % 3 == 1, near * 300.0, load(x + i)));
        store(a + i, rint(w) as i8);
        store(b + i, w as u8);
        store(c + i, rint(w) as i16);
        store(d + i, floor(w) as u16);
        store(e + i, w as i8 as i16);
        store(f + i, w as u8 as u16);
        store(g + i, rint(w) as i8 as i32 + w as u16 as i32);
    }
}
