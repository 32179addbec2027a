//! Comparisons of indices with constants, the ranges of which touch at one end.
//! y: zeros 112
fn kernel(y: PtrMut<i32>) {
    let lanes = arange(5, 13);
    let at = arange(0, 8);
    store(y + at, (lanes <= 5) as i32);
    store(y + 8 + at, (lanes < 5) as i32);
    store(y + 16 + at, (lanes >= 12) as i32);
    store(y + 24 + at, (lanes > 12) as i32);
    store(y + 32 + at, (lanes > 11) as i32);
    store(y + 40 + at, (lanes <= 12) as i32);
    store(y + 48 + at, (lanes < 12) as i32);
    store(y + 56 + at, (lanes == 12) as i32);
    store(y + 64 + at, (lanes != 5) as i32);
    store(y + 72 + at, (5 >= lanes) as i32);
    store(y + 80 + at, (12 <= lanes) as i32);
    store(y + 88 + at, (lanes > 4) as i32);
    store(y + 96 + at, (lanes > 5) as i32);
    store(y + 104 + at, (lanes >= 5) as i32);
}

fn reference(y: PtrMut<i32>) {
    for i in 0..8 {
        store(y + i, if i == 0 { 1i32 } else { 0i32 });
        store(y + 8 + i, 0);
        store(y + 16 + i, if i == 7 { 1i32 } else { 0i32 });
        store(y + 24 + i, 0);
        store(y + 32 + i, if i == 7 { 1i32 } else { 0i32 });
        store(y + 40 + i, 1);
        store(y + 48 + i, if i == 7 { 0i32 } else { 1i32 });
        store(y + 56 + i, if i == 7 { 1i32 } else { 0i32 });
        store(y + 64 + i, if i == 0 { 0i32 } else { 1i32 });
        store(y + 72 + i, if i == 0 { 1i32 } else { 0i32 });
        store(y + 80 + i, if i == 7 { 1i32 } else { 0i32 });
        store(y + 88 + i, 1);
        store(y + 96 + i, if i == 0 { 0i32 } else { 1i32 });
        store(y + 104 + i, 1);
    }
}
