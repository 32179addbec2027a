//! Each iteration stores a transposed tile, the last element of which is the first one of the tile that the next iteration loads.
//! y: whole 6000
//! z: zeros 8192
//! n: 1, 2, 4
//! t: 0, 1, 2
fn kernel(y: PtrMut<i32>, z: PtrMut<i32>, n: usize, t: usize) {
    let rows = arange(0, 32).col();
    let columns = arange(0, 32).row();
    for i in range(0, n, 1, num_stages = 1) {
        let v = load(y + t + i * 1023 + 992 - 32 * rows + columns);
        store(z + i * 2048 + 64 * rows + 2 * columns, v);
        store(y + t + i * 1023 + 992 + rows - 32 * columns, full::<i32>([32, 32], 7));
    }
}

fn reference(y: PtrMut<i32>, z: PtrMut<i32>, n: usize, t: usize) {
    for i in 0..n {
        for j in 0..32 {
            for k in 0..32 {
                store(z + i * 2048 + 64 * j + 2 * k, load(y + t + i * 1023 + 992 - 32 * j + k));
            }
        }
        for j in 0..1024 {
            store(y + t + i * 1023 + j, 7);
        }
    }
}
