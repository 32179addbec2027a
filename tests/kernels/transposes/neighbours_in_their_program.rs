//! An element of a transpose depends on one that another lane of its program, of the same thread, stores: elements must not change their program.
//! warps: 1
//! x: any 8192
//! y: any 8192
//! grid: 8
fn kernel(x: Ptr<i32>, y: PtrMut<i32>) {
    let o = program_id(0) * 1024 + arange(0, 1024);
    let v = load(x + o % 256 * 32 + o / 256);
    store(y + o, v - load(y + (o + 128 - o / 128 % 2 * 256)));
}

fn reference(x: Ptr<i32>, y: PtrMut<i32>) {
    for i in 0..512 {
        let o = program_id(0) * 1024 + i / 128 * 256 + i % 128;
        let (first, second) = (load(y + o), load(y + o + 128));
        store(y + o, load(x + o % 256 * 32 + o / 256) - second);
        store(y + o + 128, load(x + (o % 256 + 128) * 32 + o / 256) - first);
    }
}
