//! Sequences of loaded lengths, one behind the other: their last blocks of rows are not full, and the last one ends where the tensor does, or behind it.
//! x: whole 4096
//! starts: counting 40
//! y: zeros 2048
//! scale: 1, 3, 7, 9, -2
//! columns: 64, 64, 64, 61, 64
//! shift: 0, 5, -1, 0, 10
//! grid: 16
fn kernel(x: Ptr<f32>, starts: Ptr<i64>, y: PtrMut<f32>, scale: i64, columns: usize, shift: i64) {
    let sequence = program_id(0);
    let column = arange(0, 64);
    let start = load(starts + sequence) * scale + shift;
    let end = load(starts + sequence + 1) * scale + shift;
    let mut total = zeros::<f32>([8, 64]);
    let mut weighted = zeros::<f32>([8, 64]);
    for first in range(start, end, 8) {
        let row = first + arange(0, 8);
        let mask = (row < end).col() & (column < columns).row();
        let v = load(x + (row * columns).col() + column.row(), mask = mask, other = 0.5);
        total += v;
        weighted = weighted * 0.5 + v;
    }
    store(y + sequence * 64 + column, sum(total, axis = 0));
    store(y + 1024 + sequence * 64 + column, sum(weighted, axis = 0));
}

fn reference(x: Ptr<f32>, starts: Ptr<i64>, y: PtrMut<f32>, scale: i64, columns: usize, shift: i64) {
    let sequence = program_id(0);
    let start = load(starts + sequence) * scale + shift;
    let end = load(starts + sequence + 1) * scale + shift;
    for column in 0..64 {
        let mut totals = 0.0f32;
        let mut sums = 0.0f32;
        for lane in 0..8 {
            let mut weighted = 0.0f32;
            for first in range(start, end, 8) {
                let row = first + lane;
                let v = load(x + row * columns + column, mask = row < end && column < columns, other = 0.5);
                totals += v;
                weighted = weighted * 0.5 + v;
            }
            sums += weighted;
        }
        store(y + sequence * 64 + column, totals);
        store(y + 1024 + sequence * 64 + column, sums);
    }
}
