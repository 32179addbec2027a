//! Looks up elements of a tile whose extent is no power of two; an index that is the extent finds nothing.
//! x: any 12
//! at: whole 64
//! y: zeros 64
fn kernel(x: Ptr<i32>, at: Ptr<u8>, y: PtrMut<i32>) {
    let index = load(at + arange(0, 64)) as i64;
    store(y + arange(0, 64), gather(load(x + arange(0, 12)) ^ 77, index, 0));
}

fn reference(x: Ptr<i32>, at: Ptr<u8>, y: PtrMut<i32>) {
    for i in 0..64 {
        let index = load(at + i) as i64;
        store(y + i, if index < 12 { load(x + index) ^ 77 } else { 0 });
    }
}
