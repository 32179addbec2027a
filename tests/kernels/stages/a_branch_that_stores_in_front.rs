//! A branch in front of a loop stores what the loop loads: copies for the first iterations, which run ahead of the loop, must not run ahead of the branch.
//! x: any 4096
//! y: zeros 1024
//! n: 0, 1, 2, 4
//! k: 1, 0, 7, -1
fn kernel(x: PtrMut<i32>, y: PtrMut<i32>, n: usize, k: i32) {
    let lanes = arange(0, 1024);
    if k != 0 {
        store(x + lanes, lanes as i32 * k);
    }
    let mut total = zeros::<i32>([1024]);
    for i in range(0, n, 1, num_stages = 3) {
        total = total * 3 + load(x + 1024 * i + lanes);
    }
    store(y + lanes, total);
}

fn reference(x: PtrMut<i32>, y: PtrMut<i32>, n: usize, k: i32) {
    for j in 0..1024 {
        if k != 0 {
            store(x + j, j as i32 * k);
        }
        let mut total = 0i32;
        for i in 0..n {
            total = total * 3 + load(x + 1024 * i + j);
        }
        store(y + j, total);
    }
}
