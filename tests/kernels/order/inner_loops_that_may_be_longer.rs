//! As many columns of a row are stored, then loaded in another layout, as its end says: either end may be the larger one. The next row begins at the
//! third tile of this one.
//! x: any 4096
//! y: counting 12288
//! z: zeros 4096
//! n: 1, 2, 3
fn kernel(x: Ptr<u16>, y: PtrMut<i32>, z: PtrMut<i32>, n: usize) {
    let lanes = arange(0, 1024);
    let end = select(n == 1, 2048, 4096);
    for i in 0..n {
        for j in (0..end).step_by(1024) {
            store(y + i * 2048 + j + lanes, load(x + j + lanes) as i32);
        }
        let mut total = zeros::<i32>([1024]);
        for k in (0..end).step_by(1024) {
            total += load(y + i * 2048 + k + lanes);
        }
        store(z + i * 1024 + lanes, total);
    }
}

fn reference(x: Ptr<u16>, y: PtrMut<i32>, z: PtrMut<i32>, n: usize) {
    let end = if n == 1 { 2048 } else { 4096 };
    for i in 0..n {
        for j in 0..end {
            store(y + i * 2048 + j, load(x + j) as i32);
        }
        for j in 0..1024 {
            let mut total = 0i32;
            for k in 0..end / 1024 {
                total += load(y + i * 2048 + k * 1024 + j);
            }
            store(z + i * 1024 + j, total);
        }
    }
}
