//! A cast in front of a loop is used in the loop only.
//! x: any 64
//! y: zeros 64
//! n: 0, 1, 5
fn kernel(x: Ptr<i16>, y: PtrMut<i32>, n: usize) {
    let lanes = arange(0, 64);
    let v = load(x + lanes) as i32;
    let mut total = zeros::<i32>([64]);
    for i in range(0, n) {
        total = total * 3 + v * (i as i32 + 1);
    }
    store(y + lanes, total);
}

fn reference(x: Ptr<i16>, y: PtrMut<i32>, n: usize) {
    for lane in 0..64 {
        let mut total = 0;
        for i in 0..n {
            total = total * 3 + load(x + lane) as i32 * (i as i32 + 1);
        }
        store(y + lane, total);
    }
}
