//! Neighbours are rotated by angles of their position: they are loaded and stored together, over flat indices and a part of a tile.
//! x: any 4096
//! cos: whole 4096
//! y: zeros 4096
//! n: 2048, 1024, 1000, 1, 0, 2047
//! sequence: 8, 4, 5, 1, 3, 16
//! half: 64, 32, 20, 3, 1, 7
//! grid: 4
fn kernel(x: Ptr<bf16>, cos: Ptr<f32>, y: PtrMut<bf16>, n: usize, sequence: usize, half: usize) {
    let o = program_id(0) * 512 + arange(0, 512);
    let mask = o < n;
    let c = load(cos + o / half % sequence * half + o % half, mask = mask);
    let (even, odd) = (load(x + 2 * o, mask = mask) as f32, load(x + 2 * o + 1, mask = mask) as f32);
    store(y + 2 * o, (even * c) as bf16, mask = mask);
    store(y + 2 * o + 1, (odd * c) as bf16, mask = mask);
}

fn reference(x: Ptr<bf16>, cos: Ptr<f32>, y: PtrMut<bf16>, n: usize, sequence: usize, half: usize) {
    for p in 0..4 {
        for i in 0..512 {
            let o = 512 * p + i;
            if o < n {
                let c = load(cos + o / half % sequence * half + o % half);
                store(y + 2 * o, (load(x + 2 * o) as f32 * c) as bf16);
                store(y + 2 * o + 1, (load(x + 2 * o + 1) as f32 * c) as bf16);
            }
        }
    }
}
