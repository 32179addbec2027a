//! The last tile has masked elements whose indices would leave the tensors: beside it, an element of each row is left out.
//! x: any 180
//! b: any 40
//! y: zeros 2040
//! w: 5, 8, 3, 7, 5
//! skip: 2, 0, 3, 1, 9
//! n: 900, 1440, 539, 1260, 901
//! grid: 2
fn kernel(x: Ptr<f16>, b: Ptr<f16>, y: PtrMut<f16>, w: usize, skip: usize, n: usize) {
    let o = program_id(0) * 1024 + arange(0, 1024);
    let mask = o < n;
    let (row, column) = (o / w, o % w);
    let here = load(x + row, mask = mask) * load(b + column, mask = mask & (column != skip), other = 0.5);
    store(y + o, here, mask = mask);
}

fn reference(x: Ptr<f16>, b: Ptr<f16>, y: PtrMut<f16>, w: usize, skip: usize, n: usize) {
    for i in 0..1024 {
        let o = program_id(0) * 1024 + i;
        if o < n {
            let mut factor = 0.5 as f16;
            if o % w != skip {
                factor = load(b + o % w);
            }
            store(y + o, load(x + o / w) * factor);
        }
    }
}
