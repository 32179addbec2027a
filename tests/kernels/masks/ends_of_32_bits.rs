//! A mask ends at a number of 32 bits.
//! x: whole 512
//! y: zeros 512
//! n: 0, 100, -1, -2147483648, 2147483647
fn kernel(x: Ptr<f32>, y: PtrMut<f32>, n: i32) {
    let column = arange(0, 512);
    store(y + column, load(x + column, mask = column < n as i64, other = 3.0));
}

fn reference(x: Ptr<f32>, y: PtrMut<f32>, n: i32) {
    for j in 0..512 {
        store(y + j, load(x + j, mask = j < n as i64, other = 3.0));
    }
}
