//! Partial runs of bytes, of which a word holds four: those before the end stay, and each of those behind it has a value of its own.
//! x: any 40960
//! y: zeros 40960
//! z: zeros 40960
//! n: 1024, 1040, 1023
//! grid: 37
fn kernel(x: Ptr<i8>, y: PtrMut<i8>, z: PtrMut<i32>, n: usize) {
    let row = program_id(0);
    let column = arange(0, 1024);
    let kept = column <= row * 27;
    let v = load(x + row * n + column, mask = kept, other = (column - 300) as i8);
    store(y + row * n + column, v, mask = column < n);
    let w = load(x + row * n + column, mask = kept);
    store(z + row * n + column, w as i32, mask = column < n);
}

fn reference(x: Ptr<i8>, y: PtrMut<i8>, z: PtrMut<i32>, n: usize) {
    for i in 0..1024 {
        let at = program_id(0) * n + i;
        if i < n {
            let is_kept = i <= program_id(0) * 27;
            store(y + at, if is_kept { load(x + at) } else { (i - 300) as i8 });
            store(z + at, if is_kept { load(x + at) as i32 } else { 0 });
        }
    }
}
