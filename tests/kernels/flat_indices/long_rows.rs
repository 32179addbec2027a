//! Rows whose length is no multiple of a run, and which are shorter than a run, as long as one, or longer: a run crosses the ends of many rows, of
//! one, or of none.
//! x: whole 8192
//! w: whole 4096
//! y: zeros 4096
//! d: 1, 3, 5, 6, 7, 8, 9, 11, 15, 16, 17, 1023, 1025, 4097
//! h: 5, 2, 3, 2, 4, 1, 7, 3, 2, 5, 3, 2, 1, 1
//! grid: 4
fn kernel(x: Ptr<f16>, w: Ptr<f16>, y: PtrMut<f16>, d: usize, h: usize) {
    let o = program_id(0) * 1024 + arange(0, 1024);
    let (column, row, plane) = (o % d, o / d % h, o / (d * h));
    let scale = (row as f32 * 0.5 + 1.0) as f16;
    let v = load(x + (max(row - 1, 0) + min(plane, 3)) * 2 + column) * scale + load(w + o / d / 2);
    store(y + o, v);
}

fn reference(x: Ptr<f16>, w: Ptr<f16>, y: PtrMut<f16>, d: usize, h: usize) {
    for i in 0..1024 {
        let o = program_id(0) * 1024 + i;
        let column = o % d;
        let row = o / d % h;
        let plane = o / (d * h);
        let scale = (row as f32 * 0.5 + 1.0) as f16;
        let v = load(x + (max(row - 1, 0) + min(plane, 3)) * 2 + column) * scale + load(w + o / d / 2);
        store(y + o, v);
    }
}
