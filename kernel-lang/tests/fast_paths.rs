//! Every product of tiles that warpgroups can multiply is multiplied by them, from blocks that tensor copies bring: of each type, in each order of both operands.

use kernel_lang::target::Target;
use kernel_lang::{Bindings, Options, Schedule, compile};

const SOURCE: &str = "fn product<A: Element, S: Number, const TF32: bool, const TRANSPOSED_A: bool, const TRANSPOSED_B: bool, const M: usize, const N: usize, const K: usize>(
    x: Ptr<A>, y: Ptr<A>, z: PtrMut<S>, rows: usize, columns: usize, inner: usize,
) {
    let row = (program_id(0) * M + arange(0, M)).col();
    let column = (program_id(1) * N + arange(0, N)).row();
    let mut total = zeros::<S>([M, N]);
    for first in range(0, inner, K) {
        let k = first + arange(0, K);
        let a = load(
            x + if TRANSPOSED_A { k.row() * rows + row } else { row * inner + k.row() },
            mask = (row < rows) & (k.row() < inner),
        );
        let b = load(
            y + if TRANSPOSED_B { column * inner + k.col() } else { k.col() * columns + column },
            mask = (column < columns) & (k.col() < inner),
        );
        total += dot(a, b, acc_type = S, precision = if TF32 { \"tf32\" } else { \"ieee\" });
    }
    store(z + row * columns + column, total, mask = (row < rows) & (column < columns));
}";

#[test]
fn products_are_those_of_warpgroups() {
    let func = kernel_frontend::lower_source(&format!("#[kernel]\n{SOURCE}"), "product.rs").expect("it is well formed");
    let kinds = [("f16", "f32"), ("bf16", "f32"), ("f32", "f32"), ("f8e4m3", "f32"), ("f8e5m2", "f32"), ("i8", "i32"), ("u8", "i32")];
    let tiles = [([64, 64], 4), ([64, 256], 4), ([128, 64], 8), ([128, 128], 8), ([128, 256], 8), ([256, 128], 8), ([16, 128], 4)];
    for (factor, sum) in kinds {
        for (([m, n], num_warps), transposed) in
            tiles.into_iter().flat_map(|tile| (0..4).map(move |orders| (tile, [orders & 1, orders >> 1])))
        {
            // Of types of 8 and 32 bits, at most one operand lies across the sum, and the tile has as many rows or columns as warps need for it.
            let across = [transposed[0] == 1, transposed[1] == 0];
            let is_half = ["f16", "bf16"].contains(&factor);
            let has_instruction = is_half
                || match across {
                    [false, false] => true,
                    [true, false] => m >= 16 * num_warps as i64 && n <= 256,
                    [false, true] => n >= 16 * num_warps as i64 && m <= 256,
                    [true, true] => false,
                };
            let bytes = if is_half {
                2
            } else if factor == "f32" {
                4
            } else {
                1
            };
            let bindings = Bindings::new()
                .ty("A", factor.parse().expect("it is a type"))
                .ty("S", sum.parse().expect("it is a type"))
                .constant("TF32", i128::from(factor == "f32"))
                .constant("TRANSPOSED_A", transposed[0].into())
                .constant("TRANSPOSED_B", transposed[1].into())
                .constant("M", m.into())
                .constant("N", n.into())
                .constant("K", 128 / bytes);
            let schedule = Schedule { num_warps, num_stages: 4, ..Schedule::DEFAULT };
            let ptx = compile(&func, &Options { schedule, ..Options::new(bindings, Target::SM_90A) }).expect("it compiles").ptx;
            let found = ["wgmma.mma_async", "cp.async.bulk.tensor.2d.shared::cluster"].map(|instruction| ptx.contains(instruction));
            assert_eq!(found, [has_instruction; 2], "{factor}, {m} x {n}, {num_warps} warps, transposed {transposed:?}");
        }
    }
}
