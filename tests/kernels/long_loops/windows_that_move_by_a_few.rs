//! A loop over windows that overlap: the first is aligned as wide accesses are, the next is not.
//! x: whole 3000
//! y: zeros 512
//! n: 20, 9, 1, 0, 100
//! a: 0, 1, 2, 3, 0
fn kernel(x: Ptr<i32>, y: PtrMut<i32>, n: usize, a: usize) {
    let mut total = zeros::<i32>([512]);
    for i in range(0, n, 1) {
        total += load(x + a + i * 33 + arange(0, 512));
    }
    store(y + arange(0, 512), total);
}

fn reference(x: Ptr<i32>, y: PtrMut<i32>, n: usize, a: usize) {
    for lane in 0..512 {
        let mut total = 0 as i32;
        for i in range(0, n, 1) {
            total = total + load(x + a + i * 33 + lane);
        }
        store(y + lane, total);
    }
}
