//! Causal rows: each program keeps one element more than the one before, so that its last run is partial.
//! x: any 20480
//! y: zeros 20480
//! n: 512, 520, 515
//! grid: 37
fn kernel(x: Ptr<f16>, y: PtrMut<f16>, n: usize) {
    let row = program_id(0);
    let column = arange(0, 512);
    let v = load(x + row * n + column, mask = column <= row * 13, other = 2.5);
    store(y + row * n + column, v + 1.0, mask = column < n);
}

fn reference(x: Ptr<f16>, y: PtrMut<f16>, n: usize) {
    for i in 0..512 {
        let at = program_id(0) * n + i;
        if i < n {
            let v = if i <= program_id(0) * 13 { load(x + at) } else { 2.5 };
            store(y + at, v + 1.0);
        }
    }
}
