//! Whole kernels through the compiler: matrices of odd sizes, reduced, transposed, reshaped, in loops and branches.

use kernel_lang::target::Target;
use kernel_lang::{Bindings, Prepared, Schedule, ir::parse};

use crate::harness::{Arg, Random, compiled, emitted, module, run};

fn scalar(value: i64) -> Arg {
    Arg::Scalar(value.to_le_bytes().to_vec())
}

/// The ops that make offsets and a mask of a tile whose corner is at `%row`, `%col` of a matrix of `%m` rows and `%n` columns.
fn matrix(rows: u32, columns: u32, stride: &str) -> String {
    let stride = match stride.parse::<i64>() {
        Ok(number) => format!("const {{value = {number}}}"),
        Err(_) => format!("broadcast {stride}"),
    };
    format!(
        "%ar = arange {{start = 0, end = {rows}}} : tile<i64, [{rows}]>
        %row_s = broadcast %row : tile<i64, [{rows}]>
        %r = add %row_s, %ar : tile<i64, [{rows}]>
        %ac = arange {{start = 0, end = {columns}}} : tile<i64, [{columns}]>
        %col_s = broadcast %col : tile<i64, [{columns}]>
        %c = add %col_s, %ac : tile<i64, [{columns}]>
        %r1 = expand_dims %r {{axis = 1}} : tile<i64, [{rows}, 1]>
        %c1 = expand_dims %c {{axis = 0}} : tile<i64, [1, {columns}]>
        %ms = broadcast %m : tile<i64, [{rows}, 1]>
        %ns = broadcast %n : tile<i64, [1, {columns}]>
        %rm = lt %r1, %ms : tile<bool, [{rows}, 1]>
        %cm = lt %c1, %ns : tile<bool, [1, {columns}]>
        %rmm = broadcast %rm : tile<bool, [{rows}, {columns}]>
        %cmm = broadcast %cm : tile<bool, [{rows}, {columns}]>
        %mask = and %rmm, %cmm : tile<bool, [{rows}, {columns}]>
        %st = {stride} : tile<i64, [{rows}, 1]>
        %rs = mul %r1, %st : tile<i64, [{rows}, 1]>
        %rss = broadcast %rs : tile<i64, [{rows}, {columns}]>
        %cs = broadcast %c1 : tile<i64, [{rows}, {columns}]>
        %o = add %rss, %cs : tile<i64, [{rows}, {columns}]>\n"
    )
}

const HEAD: &str = "%z = const {value = 0} : i64\n";

fn words(values: &[u32]) -> Arg {
    Arg::tensor(values.iter().map(|value| value.to_le_bytes()))
}

fn poison(count: usize) -> Arg {
    words(&vec![0xeeee_eeee; count])
}

fn found(arg: &Arg) -> Vec<u32> {
    arg.elements().into_iter().map(u32::from_le_bytes).collect()
}

#[test]
fn rows_and_columns_of_ragged_matrices() {
    let mut random = Random::new(7);
    for round in 0..24 {
        let (rows, columns) = (1 << random.below(6), 1 << random.below(8));
        let (m, n) = (1 + random.below(2 * rows as usize), 1 + random.below(columns as usize));
        let axis = random.below(2);
        let num_warps = [1, 2, 4, 8][random.below(4)];
        let full = round % 3 == 0;
        let (m, n) = if full { (2 * rows as usize, columns as usize) } else { (m, n) };
        let stride = if round % 2 == 0 { n.to_string() } else { "%n".to_string() };
        let extent = if axis == 0 { columns } else { rows };
        let (index, limit) = if axis == 0 { ("%c", "%n") } else { ("%r", "%m") };
        // Along the columns each program has a row of results of its own.
        let first = if axis == 0 { "%pn = mul %pid, %n : i64\n" } else { "%pn = const {value = 0} : i64\n" };
        let text = format!(
            "kernel @sums(%x: ptr<u32>, %y: ptr_mut<u32>, %m: i64, %n: i64) {{
            {HEAD}%pid = program_id {{axis = 0}} : i64
            %block = const {{value = {rows}}} : i64
            %row = mul %pid, %block : i64
            %col = const {{value = 0}} : i64
            {}%v = load %x, %o {{mask = %mask}} : tile<u32, [{rows}, {columns}]>
            %s = reduce %v {{axis = {axis}}} (%a: u32, %b: u32) {{\n%t = add %a, %b : u32\nyield %t\n}} : tile<u32, [{extent}]>
            {first}%ps = broadcast %pn : tile<i64, [{extent}]>
            %to = add %ps, {index} : tile<i64, [{extent}]>
            %ls = broadcast {limit} : tile<i64, [{extent}]>
            %q = lt {index}, %ls : tile<bool, [{extent}]>
            store %y, %to, %s {{mask = %q}}
            return\n}}",
            matrix(rows, columns, &stride)
        );
        let module = compiled(&text, num_warps);
        let x: Vec<u32> = (0..m * n).map(|_| random.next() as u32).collect();
        let programs = m.div_ceil(rows as usize);
        let sum = |rows: std::ops::Range<usize>, columns: std::ops::Range<usize>| {
            rows.flat_map(|row| columns.clone().map(move |column| (row, column)))
                .fold(0u32, |sum, (row, column)| sum.wrapping_add(x[row * n + column]))
        };
        let expected: Vec<u32> = if axis == 1 {
            (0..m).map(|row| sum(row..row + 1, 0..n)).collect()
        } else {
            let block = rows as usize;
            let rows_of = |program: usize| program * block..((program + 1) * block).min(m);
            (0..programs * n).map(|at| sum(rows_of(at / n), at % n..at % n + 1)).collect()
        };
        let mut args = [words(&x), poison(expected.len()), scalar(m as i64), scalar(n as i64)];
        run(&module, num_warps, [programs as u32, 1, 1], &mut args, round);
        assert_eq!(found(&args[1]), expected, "round {round}: {m} x {n} by {rows} x {columns}, axis {axis}, {num_warps} warps\n{text}");
    }
}

#[test]
fn transposes_of_every_width() {
    let mut random = Random::new(3);
    for (elem, bytes) in [("bool", 1), ("i8", 1), ("bf16", 2), ("f32", 4), ("i64", 8)] {
        for num_warps in [1, 4] {
            for permutes in [false, true] {
                let (rows, columns) = (1 << (2 + random.below(4)), 1 << (2 + random.below(4)));
                let tile = format!("[{rows}, {columns}]");
                let permuted = format!("[{columns}, {rows}]");
                // Offsets of the result: as the transpose's own rows, or written with the axes of the operand.
                let (permute, shape, value, from, to) = if permutes {
                    (format!("%t = permute %v {{order = [1, 0]}} : tile<{elem}, {permuted}>\n"), permuted.clone(), "%t", "%ac", "%ar")
                } else {
                    (String::new(), tile.clone(), "%v", "", "")
                };
                let offsets = if permutes {
                    format!(
                        "%u1 = expand_dims {from} {{axis = 1}} : tile<i64, [{columns}, 1]>
                        %u2 = expand_dims {to} {{axis = 0}} : tile<i64, [1, {rows}]>
                        %u3 = const {{value = {rows}}} : tile<i64, [{columns}, 1]>
                        %u4 = mul %u1, %u3 : tile<i64, [{columns}, 1]>
                        %u5 = broadcast %u4 : tile<i64, {shape}>
                        %u6 = broadcast %u2 : tile<i64, {shape}>\n"
                    )
                } else {
                    format!(
                        "%u3 = const {{value = {rows}}} : tile<i64, [1, {columns}]>
                        %u4 = mul %c1, %u3 : tile<i64, [1, {columns}]>
                        %u5 = broadcast %u4 : tile<i64, {shape}>
                        %u6 = broadcast %r1 : tile<i64, {shape}>\n"
                    )
                };
                let text = format!(
                    "kernel @permute(%x: ptr<{elem}>, %y: ptr_mut<{elem}>, %m: i64, %n: i64) {{
                    %row = const {{value = 0}} : i64\n%col = const {{value = 0}} : i64
                    {}%v = load %x, %o : tile<{elem}, {tile}>
                    {permute}{offsets}%to = add %u5, %u6 : tile<i64, {shape}>
                    store %y, %to, {value}
                    return\n}}",
                    matrix(rows, columns, &columns.to_string())
                );
                let module = compiled(&text, num_warps);
                let (rows, columns) = (rows as usize, columns as usize);
                let x: Vec<u8> = (0..rows * columns * bytes).map(|_| random.next() as u8 >> if elem == "bool" { 7 } else { 0 }).collect();
                let expected: Vec<u8> =
                    (0..rows * columns).flat_map(|at| x[(at % rows * columns + at / rows) * bytes..][..bytes].to_vec()).collect();
                let mut args =
                    [Arg::Tensor(x, bytes), Arg::Tensor(vec![0xee; expected.len()], bytes), scalar(rows as i64), scalar(columns as i64)];
                run(&module, num_warps, [1; 3], &mut args, 1);
                let Arg::Tensor(found, _) = &args[1] else { unreachable!() };
                assert!(*found == expected, "{elem} {rows} x {columns}, {num_warps} warps\n{text}");
            }
        }
    }
}

/// Carried tiles, a reduction in each iteration, one more in a branch, and a scan at the end.
#[test]
fn shared_memory_is_used_again_in_loops_and_branches() {
    let text = |length: u32, take: bool| {
        format!(
            "kernel @walk(%x: ptr<u32>, %y: ptr_mut<u32>, %count: i64, %take: bool) {{
            %0 = const {{value = 0}} : i64
            %1 = const {{value = 1}} : i64
            %length = const {{value = {length}}} : i64
            %start = const {{value = 1}} : tile<u32, [{length}]>
            %acc0 = const {{value = 0}} : u32
            %i = arange {{start = 0, end = {length}}} : tile<i64, [{length}]>
            %tile, %acc = for %0, %count, %1, %start, %acc0 (%k: i64, %t: tile<u32, [{length}]>, %a: u32) {{
                %at = mul %k, %length : i64
                %as = broadcast %at : tile<i64, [{length}]>
                %o = add %as, %i : tile<i64, [{length}]>
                %v = load %x, %o : tile<u32, [{length}]>
                %w = add %v, %t : tile<u32, [{length}]>
                %s = reduce %w {{axis = 0}} (%p: u32, %q: u32) {{\n%pq = add %p, %q : u32\nyield %pq\n}} : u32
                %odd = const {{value = {take}}} : bool
                %take2 = and %odd, %take : bool
                %b = if %take2 () {{
                    %d = reduce %v {{axis = 0}} (%p2: u32, %q2: u32) {{\n%m2 = max %p2, %q2 : u32\nyield %m2\n}} : u32
                    %e = add %a, %d : u32
                    yield %e
                }} () {{
                    yield %a
                }} : u32
                %f = add %b, %s : u32
                yield %w, %f
            }} : tile<u32, [{length}]>, u32
            %c = scan %tile {{axis = 0, reverse = true}} (%p3: u32, %q3: u32) {{\n%s3 = add %p3, %q3 : u32\nyield %s3\n}} : tile<u32, [{length}]>
            %accs = broadcast %acc : tile<u32, [{length}]>
            %out = xor %c, %accs : tile<u32, [{length}]>
            store %y, %i, %out
            return\n}}"
        )
    };
    let mut random = Random::new(11);
    for length in [16usize, 128, 1024] {
        for num_warps in [1, 4, 8] {
            for take in [false, true] {
                let count = 3;
                let text = text(length as u32, take);
                let module = compiled(&text, num_warps);
                let x: Vec<u32> = (0..length * count).map(|_| random.next() as u32).collect();
                let (mut tile, mut acc) = (vec![1u32; length], 0u32);
                for part in x.chunks(length) {
                    tile.iter_mut().zip(part).for_each(|(t, v)| *t = t.wrapping_add(*v));
                    if take {
                        acc = acc.wrapping_add(*part.iter().max().unwrap());
                    }
                    acc = tile.iter().fold(acc, |acc, t| acc.wrapping_add(*t));
                }
                for at in (0..length - 1).rev() {
                    tile[at] = tile[at].wrapping_add(tile[at + 1]);
                }
                let expected: Vec<u32> = tile.into_iter().map(|t| t ^ acc).collect();
                let mut args = [words(&x), poison(length), scalar(count as i64), Arg::Scalar(vec![1])];
                run(&module, num_warps, [1; 3], &mut args, 2);
                assert_eq!(found(&args[1]), expected, "{length} by {num_warps} warps, {take}\n{text}\n{}", module.text);
            }
        }
    }
}

#[test]
fn reshapes_permutations_and_reductions_in_sequence() {
    // x as 32 x 8, transposed, its rows (8 of 32) as 4 x 2 x 32, summed along the middle, and spread over a new axis.
    let text = "kernel @shapes(%x: ptr<u32>, %y: ptr_mut<u32>) {
        %i = arange {start = 0, end = 256} : tile<i64, [256]>
        %v = load %x, %i : tile<u32, [256]>
        %m = reshape %v : tile<u32, [32, 8]>
        %t = permute %m {order = [1, 0]} : tile<u32, [8, 32]>
        %h = reshape %t : tile<u32, [4, 2, 32]>
        %s = reduce %h {axis = 1} (%a: u32, %b: u32) {
            %c = add %a, %b : u32
            yield %c
        } : tile<u32, [4, 32]>
        %e = expand_dims %s {axis = 2} : tile<u32, [4, 32, 1]>
        %b3 = broadcast %e : tile<u32, [4, 32, 4]>
        %f = reshape %b3 : tile<u32, [512]>
        %o = arange {start = 0, end = 512} : tile<i64, [512]>
        store %y, %o, %f
        return
    }";
    let mut random = Random::new(5);
    for num_warps in [1, 2, 4, 8, 16] {
        let module = compiled(text, num_warps);
        let x: Vec<u32> = (0..256).map(|_| random.next() as u32).collect();
        let transposed = |row: usize, column: usize| x[column * 8 + row];
        let expected: Vec<u32> = (0..512)
            .map(|at| (at / 128, at / 4 % 32))
            .map(|(row, column)| transposed(2 * row, column).wrapping_add(transposed(2 * row + 1, column)))
            .collect();
        let mut args = [words(&x), poison(512)];
        run(&module, num_warps, [1; 3], &mut args, 3);
        assert_eq!(found(&args[1]), expected, "{num_warps} warps\n{}", module.text);
    }
}

#[test]
fn rows_are_normalised() {
    let golden = include_str!("../../../kernel-lang/tests/filetests/ptx/sm_80/softmax_rows.kir");
    let mut random = Random::new(9);
    for num_warps in [1, 4, 8] {
        let module = compiled(golden, num_warps);
        let x: Vec<f32> = (0..512).map(|_| random.below(2000) as f32 / 100.0 - 10.0).collect();
        let mut args = [Arg::tensor(x.iter().map(|x| x.to_le_bytes())), poison(512)];
        run(&module, num_warps, [1; 3], &mut args, 4);
        let y: Vec<f32> = args[1].elements().into_iter().map(f32::from_le_bytes).collect();
        for (row, result) in x.chunks(128).zip(y.chunks(128)) {
            let most = row.iter().copied().fold(f32::MIN, f32::max);
            let total: f64 = row.iter().map(|x| f64::from(x - most).exp()).sum();
            for (x, y) in row.iter().zip(result) {
                let expected = f64::from(x - most).exp() / total;
                assert!((f64::from(*y) - expected).abs() <= 1e-6 * expected, "{y} {expected}");
            }
        }
    }
}

/// An unrolled loop has the same trip count as the loop that is not unrolled, also if two steps exceed 64 bits.
#[test]
fn trip_counts_of_any_step() {
    let text = "kernel @count(%y: ptr_mut<i64>, %lower: i64, %upper: i64, %step: i64) {
        %zero = const {value = 0} : i64
        %one = const {value = 1} : i64
        %count = for %lower, %upper, %step, %zero {unroll = 2} (%i: i64, %n: i64) {
            %next = add %n, %one : i64
            yield %next
        } : i64
        store %y, %zero, %count
        return
    }";
    let module = compiled(text, 1);
    let quarter = 1 << 62;
    for (lower, upper, step, trip_count) in [
        (0, 10, 1, 10),
        (0, 11, 2, 6),
        (3, 3, 1, 0),
        (0, 5, -1, 0),
        (-quarter, quarter - 1, quarter, 2i64),
        (0, i64::MAX - 1, i64::MAX, 1),
        (i64::MIN, i64::MIN + 3 * (quarter / 2), quarter / 2, 3),
    ] {
        let mut args = [Arg::tensor([[0xee; 8]]), scalar(lower), scalar(upper), scalar(step)];
        run(&module, 1, [1; 3], &mut args, 0);
        assert_eq!(args[0].elements(), [trip_count.to_le_bytes()], "from {lower} to {upper} by {step}");
    }
}

/// One preparation serves schedules of one CTA and of clusters in turn: only the former scan the groups of a tile in slices, which
/// CTAs of a cluster would have to share.
#[test]
fn a_kernel_that_is_prepared_once_runs_as_one_cta_and_as_clusters() {
    let text = "kernel @groups(%x: ptr<u32>, %y: ptr_mut<u32>, %n: i64) {
        %pid = program_id {axis = 0} : i64
        %block = const {value = 2048} : i64
        %first = mul %pid, %block : i64
        %firsts = broadcast %first : tile<i64, [2048]>
        %i = arange {start = 0, end = 2048} : tile<i64, [2048]>
        %o = add %firsts, %i : tile<i64, [2048]>
        %ns = broadcast %n : tile<i64, [2048]>
        %mask = lt %o, %ns : tile<bool, [2048]>
        %v = load %x, %o {mask = %mask} : tile<u32, [2048]>
        %g = reshape %v : tile<u32, [32, 64]>
        %s = scan %g {axis = 1} (%a: u32, %b: u32) {\n%ab = add %a, %b : u32\nyield %ab\n} : tile<u32, [32, 64]>
        %r = reshape %s : tile<u32, [2048]>
        store %y, %o, %r {mask = %mask}
        return\n}";
    let mut random = Random::new(13);
    let x: Vec<u32> = (0..4000).map(|_| random.next() as u32).collect();
    let mut expected = x.clone();
    for group in expected.chunks_mut(64) {
        (1..group.len()).for_each(|at| group[at] = group[at].wrapping_add(group[at - 1]));
    }
    let prepared = Prepared::new(&parse(text).unwrap(), &Bindings::new(), Target::SM_90A, false).unwrap();
    for num_ctas in [1, 8, 1] {
        let (compiled, _) = prepared
            .compile(Schedule { num_ctas, ..Schedule::DEFAULT })
            .unwrap_or_else(|diagnostics| panic!("{}", diagnostics.render(&[])));
        let mut args = [words(&x), poison(x.len()), scalar(x.len() as i64)];
        run(&module(compiled), Schedule::DEFAULT.num_warps, [2 * num_ctas, 1, 1], &mut args, 3);
        assert_eq!(found(&args[1]), expected, "{num_ctas} CTAs");
    }
}

#[test]
fn the_length_of_a_view_counts_its_own_elements() {
    let text = "kernel @lengths(%x: ptr<u8>, %y: ptr_mut<i64>) {
        %v = view %x : ptr<u32>
        %length = length %v : i64
        %at = const {value = 0} : i64
        store %y, %at, %length {in_bounds = true}
        return\n}";
    let mut args = [Arg::tensor((0..20u8).map(|v| [v])), Arg::tensor([[0u8; 8]])];
    run(&emitted(text, 1), 1, [1; 3], &mut args, 0);
    assert_eq!(args[1].elements(), [5i64.to_le_bytes()]);
}
