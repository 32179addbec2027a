//! A row is added to every row: runs of 8 neighbours have one row, or are cut by the end of one; the row may be too short.
//! x: whole 4096
//! bias: whole 96
//! y: zeros 4096
//! columns: 96, 64, 8, 50, 7, 1, 100, 96
//! n: 4096, 4096, 4096, 4096, 4096, 4096, 4096, 4001
//! grid: 4
fn kernel(x: Ptr<f16>, bias: Ptr<f16>, y: PtrMut<f16>, columns: usize, n: usize) {
    let o = program_id(0) * 1024 + arange(0, 1024);
    let mask = o < n;
    store(y + o, load(x + o, mask = mask) + load(bias + o % columns, mask = mask), mask = mask);
}

fn reference(x: Ptr<f16>, bias: Ptr<f16>, y: PtrMut<f16>, columns: usize, n: usize) {
    for i in 0..1024 {
        let o = program_id(0) * 1024 + i;
        if o < n {
            store(y + o, load(x + o) + load(bias + o % columns));
        }
    }
}
