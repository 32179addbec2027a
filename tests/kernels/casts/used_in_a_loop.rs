//! A cast in front of a loop is used in the loop only.
//! x: any 64
//! y: zeros 64
//! n: 0, 1, 5
//! m: 0, 1, 3
fn kernel(x: Ptr<i16>, y: PtrMut<i32>, n: usize, m: usize) {
    let lanes = arange(0, 64);
    let mut narrow = load(x + lanes);
    let mut total = zeros::<i32>([64]);
    for _ in range(0, n) {
        let v = narrow as i32;
        for i in range(0, m) {
            total = total * 3 + v * (i as i32 + 1);
        }
        narrow = narrow * 2 + 1;
    }
    store(y + lanes, total);
}

fn reference(x: Ptr<i16>, y: PtrMut<i32>, n: usize, m: usize) {
    for lane in 0..64 {
        let mut narrow = load(x + lane);
        let mut total = 0;
        for _ in range(0, n) {
            for i in range(0, m) {
                total = total * 3 + narrow as i32 * (i as i32 + 1);
            }
            narrow = narrow * 2 + 1;
        }
        store(y + lane, total);
    }
}
