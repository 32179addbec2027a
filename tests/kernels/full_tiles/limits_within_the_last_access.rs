//! A limit that leaves of a tile all but its last element, all but a part of a wide access, or nothing, though the tensor goes on.
//! y: whole 600
//! a: 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 350
//! n: 255, 255, 255, 255, 0, 0, 0, 0, 61, 61, 61, 61, 64, 64, 64, 64, 0, 0, 0, 0, -3
//! r: 0, 0, 0, 0, 1, 1, 1, 1, 0, 0, 0, 0, 1, 1, 1, 1, 257, 257, 257, 257, 2
//! way: 0, 0, 0, 0, 1, 1, 1, 1, 0, 0, 0, 0, 2, 2, 2, 2, 3, 3, 3, 3, 2
fn kernel(y: PtrMut<i32>, a: usize, n: i64, r: i64, way: i64) {
    let at = a + arange(0, 256);
    let lanes = arange(0, 256);
    if way == 0 {
        store(y + at, load(y + at) + 3, mask = lanes < n);
    }
    if way == 1 {
        store(y + at, load(y + at) * 5, mask = r + lanes < 256);
    }
    if way == 2 {
        store(y + at, load(y + at) * 3, mask = r + lanes <= 256);
    }
    if way == 3 {
        store(y + at, load(y + at) + 100, mask = lanes - r > -1);
    }
}

fn reference(y: PtrMut<i32>, a: usize, n: i64, r: i64, way: i64) {
    for i in 0..min(256, 600 - a) {
        let v = load(y + a + i);
        if way == 0 && i < n {
            store(y + a + i, v + 3);
        }
        if way == 1 && r + i < 256 {
            store(y + a + i, v * 5);
        }
        if way == 2 && r + i <= 256 {
            store(y + a + i, v * 3);
        }
        if way == 3 && i >= r {
            store(y + a + i, v + 100);
        }
    }
}
