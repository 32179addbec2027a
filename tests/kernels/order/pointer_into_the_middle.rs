//! A tile is stored through a tensor's own pointer and loaded, in another layout, through one made of the address of its first element.
//! x: any 1040
//! w: any 1040
//! y: zeros 1060
//! z: zeros 2048
//! s: 0, 0, 0, 0, 4, 4, 4, 4, 5, 5, 5, 5, 6, 6, 6, 6, 7, 7, 7, 7
//! t: 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3
#[kernel(unchecked)]
fn kernel(x: Ptr<u16>, w: Ptr<u16>, y: PtrMut<i32>, z: PtrMut<i32>, s: usize, t: usize) {
    let lanes = arange(0, 1024);
    let p = (y + 16) as u64 as PtrMut<i32>;
    store(y + t + 16 + lanes, load(x + s + lanes) as i32 + load(w + s + lanes) as i32);
    store(z + 2 * lanes, load(p + t + lanes));
}

fn reference(x: Ptr<u16>, w: Ptr<u16>, y: PtrMut<i32>, z: PtrMut<i32>, s: usize, t: usize) {
    for i in 0..1024 {
        store(y + t + 16 + i, load(x + s + i) as i32 + load(w + s + i) as i32);
        store(z + 2 * i, load(x + s + i) as i32 + load(w + s + i) as i32);
    }
}
