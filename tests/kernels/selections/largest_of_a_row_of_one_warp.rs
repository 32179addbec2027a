//! The largest elements, not as many as a power of two, of a row that is none either: a thread holds some bits of an index in registers.
//! x: any 2000
//! y: zeros 10
//! warps: 1
//! grid: 2
fn kernel(x: Ptr<f32>, y: PtrMut<f32>) {
    let row = program_id(0);
    store(y + 5 * row + arange(0, 5), topk(load(x + 1000 * row + arange(0, 1000)), 5));
}

fn reference(x: Ptr<f32>, y: PtrMut<f32>) {
    let row = program_id(0);
    for i in 0..1000 {
        let v = load(x + 1000 * row + i);
        let bits = bitcast::<i32>(v);
        let key = select(bits < 0, bits ^ 0x7fffffff, bits);
        let mut rank = 0;
        for j in 0..1000 {
            let other = bitcast::<i32>(load(x + 1000 * row + j));
            let other_key = select(other < 0, other ^ 0x7fffffff, other);
            rank += select(other_key > key || (other_key == key && j < i), 1, 0);
        }
        if rank < 5 {
            store(y + 5 * row + rank, v);
        }
    }
}
