//! The largest elements of rows in many warps, and of columns: runs are halved over warps, lanes and registers.
//! x: any 4096
//! y: zeros 128
//! z: zeros 512
//! warps: 8
fn kernel(x: Ptr<i16>, y: PtrMut<i16>, z: PtrMut<i16>) {
    let (i, j) = (arange(0, 16), arange(0, 256));
    let v = load(x + 256 * i.col() + j.row());
    store(y + 8 * i.col() + arange(0, 8).row(), topk(v, 8));
    store(z + 256 * arange(0, 2).col() + j.row(), topk(v, 2, axis = 0));
}

fn reference(x: Ptr<i16>, y: PtrMut<i16>, z: PtrMut<i16>) {
    for i in 0..16 {
        for j in 0..256 {
            let v = load(x + 256 * i + j);
            let mut rank = 0;
            for k in 0..256 {
                let other = load(x + 256 * i + k);
                rank += select(other > v || (other == v && k < j), 1, 0);
            }
            if rank < 8 {
                store(y + 8 * i + rank, v);
            }
            let mut rank_in_column = 0;
            for k in 0..16 {
                let other = load(x + 256 * k + j);
                rank_in_column += select(other > v || (other == v && k < i), 1, 0);
            }
            if rank_in_column < 2 {
                store(z + 256 * rank_in_column + j, v);
            }
        }
    }
}
