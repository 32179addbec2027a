//! Lanes that go backwards, from indices inside and outside of the tensor: it is the last lane that is in front of it.
//! x: any 200
//! y: zeros 512
//! s: 63, 127, 10, 0, -1, 199, 200, 240, 262, 263, 99
fn kernel(x: Ptr<i32>, y: PtrMut<i32>, s: usize) {
    let lanes = arange(0, 64);
    store(y + lanes, load(x + s - lanes, other = 7));
    store(y + 64 + lanes, load(x + 10 - lanes, other = 8));
    store(y + 128 + lanes, load(x + s - 2 * lanes, mask = lanes < 4, other = 9));
    store(y + 192 + lanes, load(x + (2 * s - 3 * lanes), mask = lanes < s, other = 10));
    let at = s - lanes;
    store(y + 256 + lanes, load(x + at, mask = at >= 5, other = 11));
    store(y + 320 + lanes, load(x + at, mask = at > s - 9, other = 12));
    store(y + 384 + at, load(x + lanes), mask = at > 20);
}

fn reference(x: Ptr<i32>, y: PtrMut<i32>, s: usize) {
    for i in 0..64 {
        store(y + i, if s - i >= 0 && s - i < 200 { load(x + s - i) } else { 7 });
        store(y + 64 + i, if 10 - i >= 0 { load(x + 10 - i) } else { 8 });
        let v = if s - 2 * i >= 0 && s - 2 * i < 200 { load(x + s - 2 * i) } else { 9 };
        store(y + 128 + i, if i < 4 { v } else { 9 });
        let w = if 2 * s - 3 * i >= 0 && 2 * s - 3 * i < 200 { load(x + 2 * s - 3 * i) } else { 10 };
        store(y + 192 + i, if i < s { w } else { 10 });
        store(y + 256 + i, if s - i >= 5 && s - i < 200 { load(x + s - i) } else { 11 });
        let u = if s - i >= 0 && s - i < 200 { load(x + s - i) } else { 12 };
        store(y + 320 + i, if i < 9 { u } else { 12 });
        if s - i > 20 && s - i < 128 {
            store(y + 384 + s - i, load(x + i));
        }
    }
}
