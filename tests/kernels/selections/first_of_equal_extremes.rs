//! Rows with many equal elements, with NaN among them and with nothing else: the first extreme counts, and the first NaN only where all are NaN.
//! x: whole 4000
//! y: zeros 4
//! z: zeros 4
//! m: zeros 4
//! grid: 4
fn kernel(x: Ptr<f32>, y: PtrMut<i64>, z: PtrMut<i64>, m: PtrMut<f32>) {
    let row = program_id(0);
    let i = arange(0, 1000);
    let v = load(x + 1000 * row + i);
    // Of the last row all is NaN, of the others every third element. Zeros have both signs.
    let v = select(row == 3 || (i + row) % 3 == 0, f32::NAN, select(v == 0.0 && i % 2 == 0, -0.0, v));
    store(y + row, argmax(v));
    store(z + row, argmin(v));
    store(m + row, max(v));
}

fn reference(x: Ptr<f32>, y: PtrMut<i64>, z: PtrMut<i64>, m: PtrMut<f32>) {
    let row = program_id(0);
    let (mut largest, mut smallest) = (f32::NAN, f32::NAN);
    let (mut first, mut last) = (0, 0);
    for i in 0..1000 {
        let v = load(x + 1000 * row + i);
        if row != 3 && (i + row) % 3 != 0 {
            if largest != largest || v > largest {
                largest = v;
                first = i;
            }
            if smallest != smallest || v < smallest {
                smallest = v;
                last = i;
            }
        }
    }
    store(y + row, first);
    store(z + row, last);
    store(m + row, largest);
}
