//! A loop that is written out in another one, the index of which has the same name.
//! y: zeros 32
fn kernel(y: PtrMut<i64>) {
    for i in static_range(0, 2) {
        let first = i * 16;
        for i in static_range(0, 4) {
            store(y + first + arange(i * 4, i * 4 + 4), if i == 2 { 5 } else { 10 + i });
        }
    }
}

fn reference(y: PtrMut<i64>) {
    for i in 0..32 {
        let j = i % 16 / 4;
        store(y + i, if j == 2 { 5 } else { 10 + j });
    }
}
