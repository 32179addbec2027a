//! Compilation ends, soon: its time is linear in the kernel, it needs little stack, and what is too deep or too long is an error that names the limit.
//!
//! Whatever a compiler follows, operands, regions or expressions, it may follow by recursion only as far as a stack is deep, and may come by only a
//! bounded number of times. Each kernel here is generated to be deep, wide or shared in one way; a compiler that forgets what it has seen of shared
//! operands does not come to an end 64 deep, and one that is quadratic shows when the size doubles.

mod kernels;
mod sources;

use std::time::Duration;

use cpu_time::ThreadTime;
use kernel_lang::target::Target;
use kernel_lang::{Bindings, Options, compile, ir};

/// The stack of a thread that compiles the text form: a quarter of what Rust gives a thread.
const STACK_BYTES: usize = 512 * 1024;
/// The stack for kernels in Rust: half of what rustc gives a macro.
const SOURCE_STACK_BYTES: usize = 4 * 1024 * 1024;

/// The longest that one compilation takes. Without optimisation the compiler is some twenty times slower.
const LONGEST: Duration = if cfg!(debug_assertions) { Duration::from_secs(20) } else { Duration::from_secs(1) };
/// How much longer a kernel of twice the size may take: linear is 2, quadratic 4.
const MOST_GROWTH: f64 = 3.2;
/// The shortest compilation whose growth is compared: too much of a shorter one does not depend on the size.
const COMPARED: Duration = Duration::from_millis(if cfg!(debug_assertions) { 100 } else { 20 });

/// Does something on a thread with so much stack, and says how long that thread computed.
fn on_thread<T: Send + 'static>(stack: usize, work: impl FnOnce() -> T + Send + 'static) -> (T, Duration) {
    let timed = move || {
        let start = ThreadTime::now();
        (work(), start.elapsed())
    };
    std::thread::Builder::new().stack_size(stack).spawn(timed).expect("a thread starts").join().expect("compilation does not panic")
}

/// Compiles a text for a GPU and for the CPU, and does what else is done to kernels.
fn everything(text: String, target: Target) -> Duration {
    let work = move || {
        let func = ir::parse(&text).unwrap_or_else(|error| panic!("{error}"));
        let compiled = compile(&func, &Options::new(Bindings::new(), target));
        compiled.unwrap_or_else(|mistakes| panic!("{}", mistakes.render(&func.files)));
        kernel_cpu::compile(&func, &Bindings::new()).unwrap_or_else(|mistakes| panic!("{}", mistakes.render(&func.files)));
        kernel_lang::steps(&func);
        kernel_lang::analysis::flops::count(&func, &vec![Some(3); func.params.len()], &[2i64; 3]);
        assert!(ir::parse(&func.to_string()).is_ok(), "what prints, parses");
    };
    let ((), took) = on_thread(STACK_BYTES, work);
    assert!(took < LONGEST, "{target}: {took:?}");
    took
}

/// A kernel that is shared so deep: for both targets.
fn shared(text: fn(usize) -> String, depth: usize) {
    everything(text(depth), Target::SM_80);
    everything(text(depth), Target::SM_90A);
}

/// A kernel of that size, and one of half of it. What else the machine does disturbs a measurement: the best of three counts.
fn linear(text: fn(usize) -> String, size: usize) {
    // The other target has no passes of its own that follow operands.
    everything(text(size / 8), Target::SM_80);
    let mut growths = Vec::new();
    for _ in 0..3 {
        let [half, whole] = [size / 2, size].map(|size| everything(text(size), Target::SM_90A));
        if whole < COMPARED {
            return;
        }
        growths.push(whole.as_secs_f64() / half.as_secs_f64());
        if growths.last().is_some_and(|growth| *growth < MOST_GROWTH) {
            return;
        }
    }
    panic!("twice the size takes {growths:.1?} times as long");
}

macro_rules! cases {
    ($($check:ident { $($name:ident: $size:literal,)* })*) => {$($(
        #[test]
        fn $name() {
            $check(kernels::$name, $size);
        }
    )*)*};
}

cases! {
    shared {
        shared_floats: 64,
        shared_positions: 64,
        shared_gathers: 64,
        shared_products: 64,
        shared_starts: 64,
        shared_masks: 64,
        shared_boxes: 64,
        shared_assumptions: 64,
        shared_prefetch: 64,
        shared_flattened_indices: 64,
        shared_pairs: 64,
        many_pairs: 240,
        nested_loops: 90,
        nested_branches: 90,
    }
    linear {
        chain_of_floats: 20_000,
        chain_of_scalars: 20_000,
        chains_in_front_of_a_loop: 5_000,
        chain_of_conditions: 12_000,
        conditions_of_a_remainder_loop: 12_000,
        chain_of_offsets: 6_000,
        chain_of_gathers: 8_000,
        chain_of_shapes: 20_000,
        chain_of_masks: 20_000,
        chain_of_divisions: 20_000,
        chain_of_flattened_indices: 3_500,
        chain_of_narrow_sums: 20_000,
        chains_of_masked_elements: 12_000,
        many_flattened_accesses: 3_500,
        wide: 20_000,
        many_accesses: 8_000,
        many_assumptions: 3_000,
        many_divisions: 4_000,
        many_reductions: 8_000,
        many_selections: 4_000,
        many_loops: 3_000,
        many_branches: 6_000,
        carried_scalars: 2_000,
        carried_indices: 2_000,
        carried_shift: 2_000,
        parameters: 2_000,
    }
}

/// The mistakes of a text, or of a kernel in Rust; none if it compiles.
fn mistakes(source: String) -> String {
    let work = move || match kernel_frontend::lower_source(&source, "k.rs") {
        Ok(func) => {
            let bindings = func.consts.iter().fold(Bindings::new(), |bindings, param| bindings.constant(&param.name, 1));
            let compiled = compile(&func, &Options::new(bindings, Target::SM_90A));
            compiled.err().map_or(String::new(), |mistakes| mistakes.render(&func.files))
        }
        Err(mistakes) => mistakes.render(&["k.rs".into()]),
    };
    let (mistakes, took) = on_thread(SOURCE_STACK_BYTES, work);
    assert!(took < LONGEST, "{took:?}: {mistakes}");
    mistakes
}

#[test]
fn source_nests_as_deep_as_people_write_it() {
    for (what, source, _) in sources::NESTED {
        assert_eq!(mistakes(source(30)), "", "{what}");
    }
}

#[test]
fn deeper_source_is_an_error_that_names_the_limit() {
    for (what, source, too_deep) in sources::NESTED {
        let found = mistakes(source(*too_deep));
        assert!(found.contains("nested too deeply: the limits are 100 blocks and 800 operators"), "{what}: {found}");
    }
}

#[test]
fn near_the_limit_source_compiles_or_is_an_error() {
    for (what, source, too_deep) in sources::NESTED {
        for depth in [60, 95, 390, 790].into_iter().filter(|depth| depth < too_deep) {
            let found = mistakes(source(depth));
            assert!(found.is_empty() || found.contains("nest"), "{what}, {depth} deep: {found}");
        }
    }
}

#[test]
fn calls_that_double_end_in_an_error() {
    for source in [sources::doubling_functions, sources::doubling_closures] {
        assert_eq!(mistakes(source(5)), "");
        let found = mistakes(source(40));
        assert!(found.contains("more than 10000 calls of functions"), "{found}");
    }
}

#[test]
fn constants_that_double_end_in_an_error() {
    let found = mistakes(sources::doubling_constants(64));
    assert!(found.contains("this constant is computed from more than 128 others"), "{found}");
}

#[test]
fn loops_that_are_written_out_in_one_another_end_in_an_error() {
    let func = ir::parse(&kernels::repeated(8)).expect("it is well formed");
    let (result, took) = on_thread(STACK_BYTES, move || compile(&func, &Options::new(Bindings::new(), Target::SM_90A)));
    let found = result.expect_err("it would be a thousand to the eighth").render(&[]);
    assert!(found.contains("this kernel computes more than 131072 values"), "{found}");
    assert!(took < LONGEST, "{took:?}");
}

#[test]
fn a_shared_value_in_front_of_a_loop_compiles() {
    assert_eq!(mistakes(sources::shared_in_a_loop(40)), "");
}

#[test]
fn statements_take_a_linear_time() {
    let time = |count| {
        let source = sources::statements(count);
        let (mistakes, took) =
            on_thread(SOURCE_STACK_BYTES, move || kernel_frontend::lower_source(&source, "k.rs").err().map(|list| list.render(&[])));
        assert_eq!(mistakes, None);
        took
    };
    let growths: Vec<f64> = (0..3).map(|_| time(4_000).as_secs_f64() / time(2_000).as_secs_f64()).collect();
    assert!(growths.iter().any(|growth| *growth < MOST_GROWTH), "twice as many statements take {growths:.1?} times as long");
}

#[test]
fn text_that_nests_too_deeply_is_an_error() {
    for text in [kernels::nested_loops, kernels::nested_branches] {
        let (result, _) = on_thread(STACK_BYTES, move || ir::parse(&text(2_000)).map(|_| ()));
        assert_eq!(result.unwrap_err().message, "the limit is 96 regions inside of each other");
    }
    let constant = format!("kernel @k() {{ %0 = const {{value = {}1{}}} : i64\nreturn }}", "(-".repeat(5_000), ")".repeat(5_000));
    let (result, _) = on_thread(STACK_BYTES, move || ir::parse(&constant).map(|_| ()));
    assert_eq!(result.unwrap_err().message, "the limit is 64 parts of a constant inside of each other");
}
