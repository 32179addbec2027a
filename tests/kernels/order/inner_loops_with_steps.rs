//! The inner loops of one iteration load tiles which those of the next iteration store in another layout; the inner index goes down in steps of a tile.
//! x: any 4096
//! y: counting 12288
//! z: zeros 4096
//! n: 1, 2, 3
fn kernel(x: Ptr<u16>, y: PtrMut<i32>, z: PtrMut<i32>, n: usize) {
    let lanes = arange(0, 1024);
    for i in 0..n {
        for j in (0..4096).step_by(1024) {
            store(y + i * 2048 + 3072 - j + lanes, load(x + 3072 - j + lanes) as i32);
        }
        let mut total = zeros::<i32>([1024]);
        for k in (0..4096).step_by(1024) {
            total += load(y + i * 2048 + 3072 - k + lanes);
        }
        store(z + i * 1024 + lanes, total);
    }
}

fn reference(x: Ptr<u16>, y: PtrMut<i32>, z: PtrMut<i32>, n: usize) {
    for i in 0..n {
        for j in 0..4096 {
            store(y + i * 2048 + j, load(x + j) as i32);
        }
        for j in 0..1024 {
            let mut total = 0i32;
            for k in 0..4 {
                total += load(y + i * 2048 + k * 1024 + j);
            }
            store(z + i * 1024 + j, total);
        }
    }
}
