//! Memory hazards: loads and stores of the same elements by different threads, in ops that no value connects and in different iterations of a loop.

use crate::harness::{Arg, Random, compiled, run};

const COUNT: usize = 1024;

fn floats(values: &[f32]) -> Arg {
    Arg::tensor(values.iter().map(|value| value.to_le_bytes()))
}

fn found(arg: &Arg) -> Vec<f32> {
    arg.elements().into_iter().map(f32::from_le_bytes).collect()
}

/// Runs `body` in every order of warps that four seeds make, with arguments that `args` gives; `expected` says what the last of them becomes.
fn check(params: &str, body: &str, args: &[Arg], expected: &[f32]) {
    let text = format!("kernel @order({params}) {{\n%i = arange {{start = 0, end = {COUNT}}} : tile<i64, [{COUNT}]>\n{body}return\n}}");
    for num_warps in [1, 2, 4, 8] {
        let module = compiled(&text, num_warps);
        for seed in 0..4 {
            let mut args = args.to_vec();
            run(&module, num_warps, [1; 3], &mut args, seed);
            let found = found(args.last().expect("a kernel has arguments"));
            let wrong = found.iter().zip(expected).position(|(found, expected)| found != expected);
            assert_eq!(wrong, None, "{num_warps} warps, seed {seed}\n{text}\n{}", module.text);
        }
    }
}

fn numbers(seed: u64, count: usize) -> Vec<f32> {
    let mut random = Random::new(seed);
    (0..count).map(|_| random.below(200) as f32 - 100.0).collect()
}

fn halves(values: &[f32]) -> Arg {
    // The values are integers of magnitude up to 100, which are exact in bf16.
    Arg::tensor(values.iter().map(|value| ((value.to_bits() >> 16) as u16).to_le_bytes()))
}

/// The layout of bf16 loads has eight contiguous elements for each thread, and the layout of f32 loads has four.
#[test]
fn a_load_behind_a_store() {
    let x = numbers(1, COUNT);
    let body = "%h = load %x, %i : tile<bf16, [1024]>
        %v = cast %h : tile<f32, [1024]>
        store %y, %i, %v
        %w = load %y, %i : tile<f32, [1024]>
        %s = add %w, %w : tile<f32, [1024]>
        store %z, %i, %s\n";
    let expected: Vec<f32> = x.iter().map(|x| x + x).collect();
    let args = [halves(&x), floats(&[0.0; COUNT]), floats(&[0.0; COUNT])];
    check("%x: ptr<bf16>, %y: ptr_mut<f32>, %z: ptr_mut<f32>", body, &args, &expected);
}

/// All warps hold all 32 elements of a tile, and only the first warp stores them. The other warps load the stored values.
#[test]
fn a_load_of_what_one_warp_stored() {
    let x = numbers(8, 32);
    let body = "%h = arange {start = 0, end = 32} : tile<i64, [32]>
        %v = load %x, %h : tile<f32, [32]>
        store %y, %h, %v
        %w = load %y, %h : tile<f32, [32]>
        %s = reduce %w (%a: f32, %b: f32) {
            %c = add %a, %b : f32
            yield %c
        } : f32
        %all = broadcast %s : tile<f32, [1024]>
        store %z, %i, %all\n";
    let args = [floats(&x), floats(&[0.0; 32]), floats(&[0.0; COUNT])];
    check("%x: ptr<f32>, %y: ptr_mut<f32>, %z: ptr_mut<f32>", body, &args, &[x.iter().sum(); COUNT]);
}

#[test]
fn the_later_store_stays() {
    let (x, y) = (numbers(2, COUNT), numbers(3, COUNT));
    let body = "%h = load %x, %i : tile<bf16, [1024]>
        %v = cast %h : tile<f32, [1024]>
        %w = load %y, %i : tile<f32, [1024]>
        store %z, %i, %v
        store %z, %i, %w\n";
    check("%x: ptr<bf16>, %y: ptr<f32>, %z: ptr_mut<f32>", body, &[halves(&x), floats(&y), floats(&[0.0; COUNT])], &y);
}

#[test]
fn a_load_in_front_of_a_store() {
    let (x, z) = (numbers(4, COUNT), numbers(5, COUNT));
    let body = "%w = load %z, %i : tile<f32, [1024]>
        %h = load %x, %i : tile<bf16, [1024]>
        %v = cast %h : tile<f32, [1024]>
        store %z, %i, %v
        store %y, %i, %w\n";
    let args = [halves(&x), floats(&z), floats(&[0.0; COUNT])];
    check("%x: ptr<bf16>, %z: ptr_mut<f32>, %y: ptr_mut<f32>", body, &args, &z);
}

/// Rows of 1022 elements: every other row is aligned for wide accesses. The iterations alternate between the copy for full tiles and the guarded one.
#[test]
fn iterations_with_other_layouts() {
    const ROWS: usize = 6;
    let (x, y, n) = (numbers(6, ROWS * COUNT), numbers(7, COUNT), COUNT - 2);
    let iteration = "%row = mul %k, %n : i64
        %rows = broadcast %row : tile<i64, [1024]>
        %at = add %rows, %i : tile<i64, [1024]>
        %v = load %x, %at : tile<f32, [1024]>
        %a = load %y, %i : tile<f32, [1024]>
        %s = add %a, %v : tile<f32, [1024]>
        store %y, %i, %s\n";
    let numbers = "%zero = const {value = 0} : i64
        %one = const {value = 1} : i64
        %six = const {value = 6} : i64\n";
    let counted = format!("{numbers}for %zero, %six, %one (%k: i64) {{\n{iteration}yield\n}}\n");
    let repeated = format!(
        "{numbers}%end = while %zero (%t: i64) {{\n%more = lt %t, %six : bool\ncondition %more, %t\n}} (%k: i64) {{\n\
         {iteration}%next = add %k, %one : i64\nyield %next\n}} : i64\n"
    );
    let expected: Vec<f32> = (0..COUNT).map(|i| (0..ROWS).fold(y[i], |sum, row| sum + x[row * n + i])).collect();
    let args = [floats(&x), Arg::Scalar((n as i64).to_le_bytes().to_vec()), floats(&y)];
    for body in [counted, repeated] {
        check("%x: ptr<f32>, %n: i64, %y: ptr_mut<f32>", &body, &args, &expected);
    }
}

/// If each iteration stores to other elements, the kernel has no barrier, neither between iterations for full tiles nor between those and the guarded ones.
#[test]
fn no_barrier_without_a_need() {
    let text = "kernel @stream(%x: ptr<f32>, %n: i64, %y: ptr_mut<f32>) {
        %i = arange {start = 0, end = 1024} : tile<i64, [1024]>
        %zero = const {value = 0} : i64
        %tile = const {value = 1024} : i64
        for %zero, %n, %tile (%k: i64) {
            %rows = broadcast %k : tile<i64, [1024]>
            %at = add %rows, %i : tile<i64, [1024]>
            %all = broadcast %n : tile<i64, [1024]>
            %mask = lt %at, %all : tile<bool, [1024]>
            %v = load %x, %at {mask = %mask} : tile<f32, [1024]>
            %old = load %y, %at {mask = %mask} : tile<f32, [1024]>
            %sum = add %v, %old : tile<f32, [1024]>
            store %y, %at, %sum {mask = %mask}
            yield
        }
        return
    }";
    let module = compiled(text, 4);
    assert!(!module.text.contains("bar.sync"), "{}", module.text);
}
