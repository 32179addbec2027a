//! A wide load fetches several signed bytes as one word; each byte is sign-extended when it is extracted.
//! x: any 2100
//! y: zeros 1
//! first: 0, 1, 12, 13, 14, 15
fn kernel(x: Ptr<i8>, y: PtrMut<i32>, first: usize) {
    store(y, sum(load(x + first + arange(0, 2048)) as i32 / 3));
}

fn reference(x: Ptr<i8>, y: PtrMut<i32>, first: usize) {
    let mut sum: i32 = 0;
    for i in 0..2048 {
        sum += load(x + first + i) as i32 / 3;
    }
    store(y, sum);
}
