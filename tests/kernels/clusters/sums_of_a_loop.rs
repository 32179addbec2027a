//! Each iteration sums up columns that several CTAs share: none may write its part of the next sum while another still reads that of the last one.
//! x: whole 4096
//! y: zeros 8
//! n: 0, 1, 4
//! ctas: 4
fn kernel(x: Ptr<i32>, y: PtrMut<i32>, n: usize) {
    for k in 0..n {
        store(y + 2 * k + arange(0, 2), sum(load(x + 1024 * k + 2 * arange(0, 512).col() + arange(0, 2).row()), axis = 0));
    }
}

fn reference(x: Ptr<i32>, y: PtrMut<i32>, n: usize) {
    for k in 0..n {
        for i in 0..512 {
            store(y + 2 * k, load(y + 2 * k) + load(x + 1024 * k + 2 * i));
            store(y + 2 * k + 1, load(y + 2 * k + 1) + load(x + 1024 * k + 2 * i + 1));
        }
    }
}
