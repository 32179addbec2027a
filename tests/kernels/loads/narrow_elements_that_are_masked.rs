//! Several bytes are loaded as one word under one mask; without `other`, masked lanes read 0.
//! x: any 5000
//! y: zeros 4
//! n: 1024, 1008, 512, 16, 16, 16, 0, 1008, 512, 16
//! first: 0, 1, 12, 13, 14, 15, 12, 0, 0, 0
//! grid: 4
fn kernel(x: Ptr<u8>, y: PtrMut<i32>, n: usize, first: usize) {
    let lanes = arange(0, 1024);
    store(y + program_id(0), sum(load(x + first + program_id(0) * n + lanes, mask = lanes < n) as i32 + 1));
}

fn reference(x: Ptr<u8>, y: PtrMut<i32>, n: usize, first: usize) {
    let mut sum: i32 = 1024;
    for i in 0..n {
        sum += load(x + first + program_id(0) * n + i) as i32;
    }
    store(y + program_id(0), sum);
}
