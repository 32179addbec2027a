//! Tiles that shared memory does not hold whole, alone or beside an async buffer: what moves their elements does it in parts. And what is said where
//! not even a part fits.

use kernel_lang::diagnostic::Diagnostic;
use kernel_lang::ir::parse;
use kernel_lang::target::Target;
use kernel_lang::{Bindings, Compiled, Options, Schedule, compile};

use crate::harness::{Arg, Random, compiled, compiled_for, emitted, run, with_room};

fn schedule(num_warps: u32) -> Schedule {
    Schedule { num_warps, ..Schedule::DEFAULT }
}

fn words<const N: usize>(random: &mut Random, count: usize) -> Vec<[u8; N]> {
    (0..count).map(|_| std::array::from_fn(|_| random.next() as u8)).collect()
}

/// Rows of `index` from `src`, both of two axes.
fn gather_kernel(elem: &str, rows: usize, columns: usize, axis: usize, picked: usize) -> String {
    let (to_rows, to_columns) = if axis == 0 { (picked, columns) } else { (rows, picked) };
    let row_major = |name: &str, rows: usize, columns: usize| {
        format!(
            "%{name}_flat = arange {{start = 0, end = {}}} : tile<i64, [{}]>
            %{name} = reshape %{name}_flat : tile<i64, [{rows}, {columns}]>\n",
            rows * columns,
            rows * columns
        )
    };
    format!(
        "kernel @pick(%x: ptr<{elem}>, %i: ptr<i64>, %y: ptr_mut<{elem}>) {{
            {}{}%v = load %x, %from : tile<{elem}, [{rows}, {columns}]>
            %at = load %i, %to : tile<i64, [{to_rows}, {to_columns}]>
            %r = gather %v, %at {{axis = {axis}}} : tile<{elem}, [{to_rows}, {to_columns}]>
            store %y, %to, %r
            return
        }}",
        row_major("from", rows, columns),
        row_major("to", to_rows, to_columns),
    )
    .replace("{axis = 0}", "")
}

fn check_gather<const N: usize>(target: Target, elem: &str, (rows, columns, axis, picked): (usize, usize, usize, usize), num_warps: u32) {
    let mut random = Random::new((rows * columns + axis) as u64);
    let x = words::<N>(&mut random, rows * columns);
    let (count, extent) = if axis == 0 { (picked * columns, rows) } else { (rows * picked, columns) };
    // Some are outside, on both sides.
    let index: Vec<i64> = (0..count).map(|_| random.below(extent + extent / 8 + 2) as i64 - 1).collect();
    let module = compiled_for(target, &gather_kernel(elem, rows, columns, axis, picked), schedule(num_warps));
    assert!(module.shared_bytes <= target.shared_bytes());
    let tensor = |values: &[[u8; N]]| Arg::tensor(values.iter().copied());
    let mut args = [tensor(&x), Arg::tensor(index.iter().map(|index| index.to_le_bytes())), tensor(&vec![[0xee; N]; count])];
    run(&module, num_warps, [1; 3], &mut args, 3);
    let found: Vec<[u8; N]> = args[2].elements();
    for (element, found) in found.into_iter().enumerate() {
        let inside = usize::try_from(index[element]).ok().filter(|index| *index < extent);
        let from = |index: usize| if axis == 0 { index * columns + element % columns } else { element / picked * columns + index };
        let wanted = inside.map_or([0; N], |index| x[from(index)]);
        assert_eq!(found, wanted, "{target} {elem} [{rows}, {columns}], axis {axis}, {num_warps} warps, element {element}");
    }
}

#[test]
fn a_gather_from_a_tile_larger_than_shared_memory() {
    for target in Target::ALL {
        check_gather::<4>(target, "f32", (1, 1 << 16, 1, 512), 8);
        check_gather::<8>(target, "f64", (1 << 15, 1, 0, 256), 4);
        check_gather::<8>(target, "i64", (64, 512, 0, 8), 8);
        check_gather::<2>(target, "bf16", (256, 512, 1, 4), 16);
        check_gather::<1>(target, "u8", (1 << 9, 1 << 9, 1, 2), 16);
    }
}

/// A histogram of more bins than there is shared memory for.
#[test]
fn counts_of_many_bins() {
    const BINS: usize = 1 << 16;
    const COUNT: usize = 4096;
    let text = format!(
        "kernel @count(%x: ptr<i32>, %m: ptr<bool>, %y: ptr_mut<i32>) {{
            %i = arange {{start = 0, end = {COUNT}}} : tile<i64, [{COUNT}]>
            %v = load %x, %i : tile<i32, [{COUNT}]>
            %mask = load %m, %i : tile<bool, [{COUNT}]>
            %h = histogram %v {{mask = %mask, bins = {BINS}}} : tile<i32, [{BINS}]>
            %to = arange {{start = 0, end = {BINS}}} : tile<i64, [{BINS}]>
            store %y, %to, %h
            return
        }}"
    );
    let mut random = Random::new(1);
    let x: Vec<i32> = (0..COUNT).map(|at| if at % 3 == 0 { 65535 } else { random.below(BINS + 100) as i32 - 50 }).collect();
    let mask: Vec<u8> = (0..COUNT).map(|_| u8::from(random.below(4) > 0)).collect();
    let mut wanted = vec![0i32; BINS];
    for (value, _) in x.iter().zip(&mask).filter(|(_, mask)| **mask == 1) {
        usize::try_from(*value).ok().and_then(|bin| wanted.get_mut(bin)).into_iter().for_each(|count| *count += 1);
    }
    for (target, num_warps) in [(Target::SM_80, 4), (Target::SM_90A, 32)] {
        let module = compiled_for(target, &text, schedule(num_warps));
        assert!(module.shared_bytes <= target.shared_bytes());
        let values = Arg::tensor(x.iter().map(|value| value.to_le_bytes()));
        let mut args = [values, Arg::tensor(mask.iter().map(|mask| [*mask])), Arg::tensor(vec![[0xee; 4]; BINS])];
        run(&module, num_warps, [1; 3], &mut args, 2);
        let found: Vec<i32> = args[2].elements().into_iter().map(i32::from_le_bytes).collect();
        assert!(found == wanted, "{target}, {num_warps} warps");
    }
}

/// A tile of 512 KiB is transposed: every element crosses the threads.
#[test]
fn a_large_tile_is_transposed() {
    const SIDE: usize = 256;
    let text = format!(
        "kernel @transpose(%x: ptr<f64>, %y: ptr_mut<f64>) {{
            %i = arange {{start = 0, end = {}}} : tile<i64, [{}]>
            %at = reshape %i : tile<i64, [{SIDE}, {SIDE}]>
            %to = permute %at {{order = [1, 0]}} : tile<i64, [{SIDE}, {SIDE}]>
            %v = load %x, %at : tile<f64, [{SIDE}, {SIDE}]>
            store %y, %to, %v
            return
        }}",
        SIDE * SIDE,
        SIDE * SIDE
    );
    let x = words::<8>(&mut Random::new(2), SIDE * SIDE);
    for target in Target::ALL {
        let module = compiled_for(target, &text, schedule(8));
        assert!(module.text.contains("ld.shared") && module.shared_bytes <= target.shared_bytes());
        let mut args = [Arg::tensor(x.iter().copied()), Arg::tensor(vec![[0xee; 8]; SIDE * SIDE])];
        run(&module, 8, [1; 3], &mut args, 1);
        let found: Vec<[u8; 8]> = args[1].elements();
        assert!((0..SIDE * SIDE).all(|index| found[index % SIDE * SIDE + index / SIDE] == x[index]), "{target}");
    }
}

#[test]
fn a_large_sort() {
    const COUNT: usize = 1 << 15;
    let text = format!(
        "kernel @sorted(%x: ptr<f64>, %y: ptr_mut<f64>) {{
            %i = arange {{start = 0, end = {COUNT}}} : tile<i64, [{COUNT}]>
            %v = load %x, %i : tile<f64, [{COUNT}]>
            %s = sort %v : tile<f64, [{COUNT}]>
            store %y, %i, %s
            return
        }}"
    );
    let mut random = Random::new(5);
    let x: Vec<f64> = (0..COUNT).map(|_| random.below(1 << 20) as f64 - 500_000.0).collect();
    let mut wanted = x.clone();
    wanted.sort_by(f64::total_cmp);
    let module = compiled_for(Target::SM_80, &text, schedule(8));
    assert!(module.shared_bytes <= Target::SM_80.shared_bytes());
    let mut args = [Arg::tensor(x.iter().map(|x| x.to_le_bytes())), Arg::tensor(vec![[0xee; 8]; COUNT])];
    run(&module, 8, [1; 3], &mut args, 1);
    let found: Vec<f64> = args[1].elements().into_iter().map(f64::from_le_bytes).collect();
    assert!(found == wanted);
}

/// A kernel of one op in a layout of this test, `in` to `out`, beside an async buffer that leaves shared memory for one element of each thread.
fn beside_an_async_buffer(op: &str, elem: (&'static str, usize), shape: &[u32], num_warps: u32, seed: u64) -> (Vec<u64>, Vec<u64>) {
    let mut random = Random::new(seed);
    let layout = random.layout(shape, num_warps, 0);
    let count: u32 = shape.iter().product();
    let flat = layout.reshape(&[count]).unwrap();
    let ty = |elem: &str| format!("tile<{elem}, {shape:?}> {layout}");
    let text = format!(
        "kernel @moves(%x: ptr<{0}>, %y: ptr_mut<{0}>) {{\n%i = arange {{start = 0, end = {count}}} : tile<i64, [{count}]> {flat}
        %at = reshape %i : {1}
        %v = load %x, %at {{in_bounds = true}} : {2}
        %r = {op} : {2}
        store %y, %at, %r {{in_bounds = true}}
        return\n}}",
        elem.0,
        ty("i64"),
        ty(elem.0)
    );
    let text = with_room(&text, num_warps, ("%x", elem.0, elem.1), 32 * num_warps * elem.1 as u32);
    let module = emitted(&text, num_warps);
    let x: Vec<u8> = (0..count as usize * elem.1).map(|_| random.next() as u8).collect();
    let mut args = [Arg::Tensor(x.clone(), elem.1), Arg::Tensor(vec![0xee; x.len()], elem.1)];
    run(&module, num_warps, [1; 3], &mut args, seed % 4);
    let Arg::Tensor(y, _) = &args[1] else { unreachable!("it is a tensor") };
    let elements = |bytes: &[u8]| {
        bytes.chunks(elem.1).map(|chunk| chunk.iter().rev().fold(0, |word: u64, byte| word << 8 | u64::from(*byte))).collect::<Vec<u64>>()
    };
    (elements(&x), elements(y))
}

#[test]
fn flips_and_butterflies_beside_an_async_buffer() {
    for seed in 0..24 {
        let num_warps = [2, 4, 8][seed as usize % 3];
        let elem = [("f64", 8), ("u8", 1), ("i32", 4), ("f16", 2)][seed as usize % 4];
        let (x, y) = beside_an_async_buffer("flip %v", elem, &[1024, 2], num_warps, seed);
        assert!((0..2048).all(|index| y[index] == x[2046 - index / 2 * 2 + index % 2]), "flip, seed {seed}");
        let bit = seed as usize % 10;
        let attributes = if bit == 0 { String::new() } else { format!("{{bit = {bit}}}") };
        let (x, y) = beside_an_async_buffer(&format!("butterfly %v {attributes}"), elem, &[1024, 2], num_warps, 100 + seed);
        assert!((0..2048).all(|index| y[index] == x[index ^ 2 << bit]), "butterfly, seed {seed}");
    }
}

/// The owning thread broadcasts a loaded element to the other threads that hold it, a few elements at a time.
#[test]
fn broadcast_loads_beside_an_async_buffer() {
    for (num_warps, seed) in [(2, 1), (4, 2), (8, 3), (4, 4)] {
        let (x, y) = beside_an_async_buffer("load %x, %at {volatile = true, in_bounds = true}", ("i64", 8), &[256], num_warps, 7 + seed);
        assert_eq!(x, y);
    }
}

fn diagnostic(target: Target, text: &str, schedule: Schedule) -> Diagnostic {
    let func = parse(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let compiled: Result<Compiled, _> = compile(&func, &Options { schedule, ..Options::new(Bindings::new(), target) });
    let mut list = compiled.expect_err("it does not fit").into_vec();
    assert_eq!(list.len(), 1, "{list:?}");
    list.remove(0)
}

fn error(target: Target, text: &str, schedule: Schedule) -> (String, Option<String>, bool) {
    let Diagnostic { message, help, beyond_gpu, .. } = diagnostic(target, text, schedule);
    (message, help, beyond_gpu)
}

/// Two loops, one in the other, that both load ahead; the lines are those of a user's source.
fn nested(outer: u32, inner: &str) -> String {
    format!(
        "kernel @nested(%x: ptr<f32>, %y: ptr_mut<f32>, %n: i64) {{
            %zero = const {{value = 0}} : i64
            %step = const {{value = 4096}} : i64
            %i = arange {{start = 0, end = 4096}} : tile<i64, [4096]>
            %none = const {{value = 0.0}} : tile<f32, [4096]>
            %all = for %zero, %n, %step, %none {{num_stages = {outer}}} (%k: i64, %acc: tile<f32, [4096]>) {{
                %ks = broadcast %k : tile<i64, [4096]>
                %at = add %ks, %i : tile<i64, [4096]>
                %v = load %x, %at {{in_bounds = true, align = 16}} : tile<f32, [4096]>
                %first = add %acc, %v : tile<f32, [4096]>
                %more = for %zero, %k, %step, %first {inner} (%l: i64, %sum: tile<f32, [4096]>) {{
                    %ls = broadcast %l : tile<i64, [4096]>
                    %there = add %ls, %i : tile<i64, [4096]>
                    %w = load %x, %there {{in_bounds = true, align = 16}} : tile<f32, [4096]>
                    %next = add %sum, %w : tile<f32, [4096]>
                    yield %next
                }} : tile<f32, [4096]> @17:5
                yield %more
            }} : tile<f32, [4096]> @12:1
            store %y, %i, %all
            return
        }}"
    )
}

#[test]
fn an_error_names_the_ops_and_their_bytes() {
    let (message, help, beyond_gpu) = error(Target::SM_90A, &nested(8, "{num_stages = 8}"), schedule(4));
    assert_eq!(
        message,
        "this kernel takes 262144 bytes of shared memory, and sm_90a has 232448: \
         8 stages of a loop's loads (line 12): 131072 bytes; 8 stages of a loop's loads (line 17): 131072 bytes"
    );
    assert_eq!(help.as_deref(), Some("say a smaller `num_stages`, or make the tiles smaller"));
    assert!(beyond_gpu);
}

/// The line that an error points at is of what takes the most.
#[test]
fn an_error_points_at_the_largest_op() {
    for (outer, inner, line) in [(4, 8, 17), (8, 4, 12)] {
        let text = nested(outer, &format!("{{num_stages = {inner}}}"));
        assert_eq!(diagnostic(Target::SM_80, &text, schedule(4)).loc.line, line, "{outer} and {inner} stages");
    }
}

/// A kernel needs more shared memory than one target has, and less than another has.
#[test]
fn a_kernel_that_is_too_large_for_one_target_fits_another() {
    let text = nested(6, "{num_stages = 6}");
    assert_eq!(compiled_for(Target::SM_90A, &text, schedule(4)).shared_bytes, 12 << 14);
    let (message, ..) = error(Target::SM_80, &text, schedule(4));
    assert!(message.starts_with("this kernel takes 196608 bytes of shared memory, and sm_80 has 166912: 6 stages"), "{message}");
}

/// A loop that does not say how many stages it has gets as many as fit into shared memory.
#[test]
fn a_loop_gets_as_many_stages_as_fit() {
    for (outer, inner) in [(9, 1), (8, 2), (7, 3)] {
        let module = compiled_for(Target::SM_80, &nested(outer, ""), Schedule { num_warps: 16, ..Schedule::DEFAULT });
        let inner = if inner == 1 { 0 } else { inner };
        assert_eq!(module.shared_bytes, (outer + inner) << 14, "{outer} outer stages");
    }
}

/// A kernel that would exceed shared memory reuses the memory of an exchange, with a barrier between two exchanges.
#[test]
fn exchanges_reuse_the_last_bytes_of_shared_memory() {
    let sums = (0..4).map(|k| {
        format!(
            "%s{k} = scan %m (%a{k}: f32, %b{k}: f32) {{
                %c{k} = add %a{k}, %b{k} : f32
                yield %c{k}
            }} : tile<f32, [128, 32]>
            %f{k} = reshape %s{k} : tile<f32, [4096]>
            store %y, %i, %f{k}\n"
        )
    });
    let text = format!(
        "kernel @sums(%x: ptr<f32>, %y: ptr_mut<f32>, %n: i64) {{
            %zero = const {{value = 0}} : i64
            %step = const {{value = 4096}} : i64
            %i = arange {{start = 0, end = 4096}} : tile<i64, [4096]>
            for %zero, %n, %step {{num_stages = 10}} (%k: i64) {{
                %ks = broadcast %k : tile<i64, [4096]>
                %at = add %ks, %i : tile<i64, [4096]>
                %v = load %x, %at {{in_bounds = true, align = 16}} : tile<f32, [4096]>
                %m = reshape %v : tile<f32, [128, 32]>
                {}yield
            }}
            return
        }}",
        sums.collect::<String>()
    );
    let module = compiled(&text, 4);
    assert!(module.shared_bytes > 10 << 14 && module.shared_bytes <= Target::SM_80.shared_bytes(), "{}", module.shared_bytes);
    let x: Vec<f32> = (0..8192).map(|at| (at % 97) as f32).collect();
    let floats = |values: &[f32]| Arg::tensor(values.iter().map(|x| x.to_le_bytes()));
    let mut args = [floats(&x), floats(&[-1.0; 4096]), Arg::Scalar(8192i64.to_le_bytes().to_vec())];
    run(&module, 4, [1; 3], &mut args, 2);
    let found: Vec<f32> = args[1].elements().into_iter().map(f32::from_le_bytes).collect();
    let wanted = |index: usize| (0..=index / 32).map(|row| x[4096 + row * 32 + index % 32]).sum::<f32>();
    assert!(found.iter().enumerate().all(|(index, found)| *found == wanted(index)));
}

/// Sums of rows and of columns that two CTAs share: what they exchange is more than one of them has shared memory for.
#[test]
fn ctas_exchange_sums_in_parts() {
    const ROWS: usize = 256;
    const COLUMNS: usize = 512;
    let sums = |name: &str, axis: &str, count: usize| {
        format!(
            "%{name} = reduce %v {axis} (%a{name}: f64, %b{name}: f64) {{
                %s{name} = add %a{name}, %b{name} : f64
                yield %s{name}
            }} : tile<f64, [{count}]>
            %at_{name} = arange {{start = 0, end = {count}}} : tile<i64, [{count}]>
            store %y_{name}, %at_{name}, %{name}\n"
        )
    };
    let text = format!(
        "kernel @sums(%x: ptr<f64>, %y_rows: ptr_mut<f64>, %y_columns: ptr_mut<f64>) {{
            %i = arange {{start = 0, end = {0}}} : tile<i64, [{0}]>
            %at = reshape %i : tile<i64, [{ROWS}, {COLUMNS}]>
            %v = load %x, %at : tile<f64, [{ROWS}, {COLUMNS}]>
            {1}{2}return
        }}",
        ROWS * COLUMNS,
        sums("rows", "{axis = 1}", ROWS),
        sums("columns", "", COLUMNS)
    );
    let mut random = Random::new(9);
    let x: Vec<f64> = (0..ROWS * COLUMNS).map(|_| random.below(1000) as f64).collect();
    let module = compiled_for(Target::SM_90A, &text, Schedule { num_ctas: 2, ..schedule(8) });
    assert!(module.text.contains("ld.shared::cluster") && module.shared_bytes <= Target::SM_90A.shared_bytes());
    let floats = |values: &[f64]| Arg::tensor(values.iter().map(|x| x.to_le_bytes()));
    let mut args = [floats(&x), floats(&[-1.0; ROWS]), floats(&[-1.0; COLUMNS])];
    run(&module, 8, [2, 1, 1], &mut args, 4);
    let found = |arg: &Arg| arg.elements().into_iter().map(f64::from_le_bytes).collect::<Vec<f64>>();
    let rows: Vec<f64> = (0..ROWS).map(|row| x[row * COLUMNS..][..COLUMNS].iter().sum()).collect();
    let columns: Vec<f64> = (0..COLUMNS).map(|column| (0..ROWS).map(|row| x[row * COLUMNS + column]).sum()).collect();
    assert!(found(&args[1]) == rows && found(&args[2]) == columns);
}

/// A kernel that adds up the first elements of so many tensors.
fn of_tensors(count: usize) -> String {
    let params: String = (0..count).map(|k| format!("%x{k}: ptr<i32>, ")).collect();
    let terms: String = (0..count).map(|k| format!("%v{k} = load %x{k}, %zero : i32\n%s{} = add %s{k}, %v{k} : i32\n", k + 1)).collect();
    format!(
        "kernel @total({params}%y: ptr_mut<i32>) {{\n%zero = const {{value = 0}} : i64\n%s0 = const {{value = 0}} : i32\n{terms}\
         store %y, %zero, %s{count}\nreturn\n}}"
    )
}

/// Up to 4352 bytes of parameters any driver takes, more those that know PTX ISA 8.1.
#[test]
fn parameters_of_many_tensors() {
    for (count, version) in [(271, "7.0"), (272, "8.1")] {
        let module = compiled(&of_tensors(count), 4);
        assert!(module.text.contains(&format!("\n.version {version}\n")), "{count} tensors");
        let mut args: Vec<Arg> = (0..count as i32).map(|k| Arg::tensor([k.to_le_bytes()])).collect();
        args.push(Arg::tensor([[0xee; 4]]));
        run(&module, 4, [1; 3], &mut args, 1);
        let total: i32 = (0..count as i32).sum();
        assert_eq!(args[count].elements(), [total.to_le_bytes()]);
    }
    // A checked kernel has one more parameter: the address of its report.
    for (count, version) in [(270, "7.0"), (271, "8.1")] {
        let options = Options { checked: true, schedule: schedule(4), ..Options::new(Bindings::new(), Target::SM_80) };
        let module =
            compile(&parse(&of_tensors(count)).unwrap(), &options).unwrap_or_else(|diagnostics| panic!("{}", diagnostics.render(&[])));
        assert!(module.ptx.contains(&format!("\n.version {version}\n")), "{count} tensors, checked");
    }
    let (message, ..) = error(Target::SM_90A, &of_tensors(2047), schedule(4));
    assert_eq!(message, "this kernel takes 32768 bytes of parameters, 16 for each tensor, and a GPU takes at most 32764");
}
