//! One limit masks two tiles of different sizes, so the layouts of the two masks differ.
//! x: whole 4200
//! y: zeros 8
//! n: 1024, 1000, 512, 512, 512, 512, 512, 80, 3, 0
//! first: 0, 1, 0, 1, 2, 3, 4, 0, 0, 1
//! grid: 4
fn kernel(x: Ptr<i32>, y: PtrMut<i32>, n: usize, first: usize) {
    let (lanes, few) = (arange(0, 1024), arange(0, 256));
    let row = program_id(0) * n + first;
    let v = load(x + row + lanes, mask = lanes < n);
    let w = load(x + row + few, mask = few < n);
    store(y + 2 * program_id(0), sum(v));
    store(y + 2 * program_id(0) + 1, sum(w));
}

fn reference(x: Ptr<i32>, y: PtrMut<i32>, n: usize, first: usize) {
    let row = program_id(0) * n + first;
    let mut total: i32 = 0;
    let mut few: i32 = 0;
    for i in 0..n {
        total += load(x + row + i);
        if i < 256 {
            few += load(x + row + i);
        }
    }
    store(y + 2 * program_id(0), total);
    store(y + 2 * program_id(0) + 1, few);
}
