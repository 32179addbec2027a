//! A loop up to a loaded number whose mask ends some rows behind or in front of the rows of the loop. The first and the last rows are in the tensor,
//! or leave it.
//! x: whole 4096
//! c: counting 4
//! y: zeros 256
//! z: zeros 256
//! rows: 64, 66, 66, 62, 61, 68, 64, 40
//! columns: 64, 64, 62, 66, 67, 60, 64, 64
//! shift: 0, 0, 0, 0, 5, 0, 1024, 2560
//! grid: 4
fn kernel(x: Ptr<f32>, c: Ptr<i64>, y: PtrMut<f32>, z: PtrMut<f32>, rows: usize, columns: usize, shift: usize) {
    let program = program_id(0);
    let column = arange(0, 64);
    let end = rows - load(c + program);
    let (mut ahead, mut behind) = (zeros::<f32>([8, 64]), zeros::<f32>([8, 64]));
    for first in range(9, end, 8) {
        let row = first + 2 + arange(0, 8);
        let mask = (row < end)[(.., None)] & (column < columns)[(None, ..)];
        ahead += load(x + row[(.., None)] * columns + column[(None, ..)] - shift, mask = mask);
    }
    for first in range(9, end, 8) {
        let row = first - 3 + arange(0, 8);
        let mask = (row < end)[(.., None)] & (column < columns)[(None, ..)];
        behind += load(x + row[(.., None)] * columns + column[(None, ..)] - shift, mask = mask);
    }
    store(y + 64 * program + column, sum(ahead, axis = 0));
    store(z + 64 * program + column, sum(behind, axis = 0));
}

fn reference(x: Ptr<f32>, c: Ptr<i64>, y: PtrMut<f32>, z: PtrMut<f32>, rows: usize, columns: usize, shift: usize) {
    let program = program_id(0);
    let end = rows - load(c + program);
    for column in 0..64 {
        let (mut ahead, mut behind) = (0.0f32, 0.0f32);
        for first in range(9, end, 8) {
            for row in first..(first + 8) {
                ahead += if row + 2 < end && column < columns { load(x + (row + 2) * columns + column - shift) } else { 0.0 };
                behind += if row - 3 < end && column < columns { load(x + (row - 3) * columns + column - shift) } else { 0.0 };
            }
        }
        store(y + 64 * program + column, ahead);
        store(z + 64 * program + column, behind);
    }
}
