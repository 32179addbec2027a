//! The largest elements, not as many as a power of two, of a row that is none either: a thread holds some bits of an index in registers. The
//! elements are the bits of floats, NaN among them, in no order. In the second row all are negative.
//! x: counting 2000
//! y: zeros 10
//! warps: 1
//! grid: 2
fn kernel(x: Ptr<i32>, y: PtrMut<f32>) {
    let row = program_id(0);
    let mixed = load(x + 1000 * row + arange(0, 1000)) * -1640531527;
    let mixed = (mixed ^ (mixed >> 15)) * 739982445;
    let bits = select(row == 1, mixed | -2147483648, mixed);
    store(y + 5 * row + arange(0, 5), topk(bitcast::<f32>(bits), 5));
}

fn reference(x: Ptr<i32>, y: PtrMut<f32>) {
    let row = program_id(0);
    for i in 0..1000 {
        let mixed = load(x + 1000 * row + i) * -1640531527;
        let mixed = (mixed ^ (mixed >> 15)) * 739982445;
        let bits = select(row == 1, mixed | -2147483648, mixed);
        let key = select(bits < 0, bits ^ 0x7fffffff, bits);
        let mut rank = 0;
        for j in 0..1000 {
            let other = load(x + 1000 * row + j) * -1640531527;
            let other = (other ^ (other >> 15)) * 739982445;
            let other = select(row == 1, other | -2147483648, other);
            let other_key = select(other < 0, other ^ 0x7fffffff, other);
            rank += select(other_key > key || (other_key == key && j < i), 1, 0);
        }
        if rank < 5 {
            store(y + 5 * row + rank, bitcast::<f32>(bits));
        }
    }
}
