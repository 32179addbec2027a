//! One view has a negative stride, and the rows of the other one overlap.
//! x: any 600
//! y: zeros 600
//! z: zeros 600
//! m: 5, 16, 20, 0, -1
//! n: 8, 7, 33, 4, 8
//! a: 0, 3, -2, 7, 1
fn kernel(x: Ptr<f32>, y: PtrMut<f32>, z: PtrMut<f32>, m: usize, n: usize, a: usize) {
    let at = arange(0, 16).col() * 8 + arange(0, 8).row();
    store(y + at, view(x + 200, [m, n], [-8, 1]).load([a, a + 1], [16, 8]));
    store(z + at, view(x + 200, [m, n], [7, 3]).load([a, a + 1], [16, 8]));
}

fn reference(x: Ptr<f32>, y: PtrMut<f32>, z: PtrMut<f32>, m: usize, n: usize, a: usize) {
    for i in 0..16 {
        for j in 0..8 {
            let row = i + a;
            let column = j + a + 1;
            let inside = (row >= 0) & (row < m) & (column >= 0) & (column < n);
            store(y + i * 8 + j, load(x + 200 - row * 8 + column, mask = inside));
            store(z + i * 8 + j, load(x + 200 + row * 7 + column * 3, mask = inside));
        }
    }
}
