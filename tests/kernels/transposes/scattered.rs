//! The store is the transposed access. The rows are a quotient without a remainder, and the values depend on row and column, too.
//! x: any 8192
//! y: zeros 8192
//! bias: any 256
//! rows: 64, 128, 32, 33, 64
//! columns: 128, 64, 32, 64, 31
//! n: 8192, 8192, 1024, 2112, 1984
//! grid: 8
fn kernel(x: Ptr<f32>, y: PtrMut<f32>, bias: Ptr<f32>, rows: usize, columns: usize, n: usize) {
    let o = program_id(0) * 1024 + arange(0, 1024);
    let mask = o < n;
    let (row, column) = (o / columns, o % columns);
    let v = load(x + o, mask = mask) + load(bias + column, mask = mask);
    let v = select(column < row, v * 2.0, v);
    store(y + column * rows + row, v, mask = mask);
}

fn reference(x: Ptr<f32>, y: PtrMut<f32>, bias: Ptr<f32>, rows: usize, columns: usize, n: usize) {
    for i in 0..1024 {
        let o = program_id(0) * 1024 + i;
        if o < n {
            let row = o / columns;
            let column = o % columns;
            let v = load(x + o) + load(bias + column);
            store(y + column * rows + row, select(column < row, v * 2.0, v));
        }
    }
}
