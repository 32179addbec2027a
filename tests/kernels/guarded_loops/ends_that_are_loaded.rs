//! A loop over rows up to a loaded number, which is the end of the tensor for the first program, and behind it or in front of the beginning in other launches.
//! x: whole 4096
//! c: counting 8
//! y: zeros 1024
//! columns: 64, 63, 32, 128, 64, 64, 16, 64
//! rows: 64, 65, 128, 32, 70, 63, 256, 12
//! skip: 0, 0, 40, 5, 0, 61, 250, -3
//! grid: 8
fn kernel(x: Ptr<f32>, c: Ptr<i64>, y: PtrMut<f32>, columns: usize, rows: usize, skip: usize) {
    let program = program_id(0);
    let column = arange(0, 128);
    let (start, end) = (skip + 3 * load(c + program), rows - load(c + program));
    let mut total = zeros::<f32>([16, 128]);
    for first in range(start, end, 16) {
        let row = first + arange(0, 16);
        let mask = (row < end)[(.., None)] & (column < columns)[(None, ..)];
        total += load(x + row[(.., None)] * columns + column[(None, ..)], mask = mask);
    }
    store(y + 128 * program + column, sum(total, axis = 0));
}

fn reference(x: Ptr<f32>, c: Ptr<i64>, y: PtrMut<f32>, columns: usize, rows: usize, skip: usize) {
    let program = program_id(0);
    for column in 0..128 {
        let mut total = 0.0f32;
        for row in (skip + 3 * load(c + program))..(rows - load(c + program)) {
            total += if column < columns { load(x + row * columns + column) } else { 0.0 };
        }
        store(y + 128 * program + column, total);
    }
}
