//! The `other` of a masked load is a tile of different values, and one wide access loads several of its elements.
//! x: any 5000
//! y: zeros 4
//! n: 1024, 1008, 512, 16, 16, 16, 0, 1008, 512, 16
//! first: 0, 1, 12, 13, 14, 15, 12, 0, 0, 0
//! grid: 4
fn kernel(x: Ptr<u8>, y: PtrMut<i32>, n: usize, first: usize) {
    let lanes = arange(0, 1024);
    let v = load(x + first + program_id(0) * n + lanes, mask = lanes < n, other = (lanes % 7) as u8);
    store(y + program_id(0), sum(v as i32 * (lanes as i32 % 5)));
}

fn reference(x: Ptr<u8>, y: PtrMut<i32>, n: usize, first: usize) {
    let mut sum: i32 = 0;
    for i in 0..1024 {
        let v = if i < n { load(x + first + program_id(0) * n + i) as i32 } else { i as i32 % 7 };
        sum += v * (i as i32 % 5);
    }
    store(y + program_id(0), sum);
}
