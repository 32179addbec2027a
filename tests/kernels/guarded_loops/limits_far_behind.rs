//! A mask of the rows of a loop ends far behind the loop, or far in front of it: the distance does not fit in 32 bits.
//! x: whole 4096
//! y: zeros 512
//! columns: 63, 63, 63, 64, 63, 63
//! limit: 4294967296, 8589934600, -4294967290, 4294967301, 2147483652, -2147483640
//! grid: 4
fn kernel(x: Ptr<f32>, y: PtrMut<f32>, columns: usize, limit: usize) {
    let program = program_id(0);
    let column = arange(0, 128);
    let mut total = zeros::<f32>([4, 128]);
    for first in range(program * 4, 60, 4) {
        let row = first + arange(0, 4);
        let mask = (row < limit)[(.., None)] & (column < columns)[(None, ..)];
        total += load(x + row[(.., None)] * columns + column[(None, ..)], mask = mask);
    }
    store(y + 128 * program + column, sum(total, axis = 0));
}

fn reference(x: Ptr<f32>, y: PtrMut<f32>, columns: usize, limit: usize) {
    let program = program_id(0);
    for column in 0..128 {
        let mut total = 0.0f32;
        for row in (program * 4)..60 {
            total += if row < limit && column < columns { load(x + row * columns + column) } else { 0.0 };
        }
        store(y + 128 * program + column, total);
    }
}
