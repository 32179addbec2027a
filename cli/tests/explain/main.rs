//! `galatea explain` as a user calls it: whole reports, the counters against counts by hand, and mistakes.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/explain");

/// The output and the errors of `galatea explain kernels.rs ..`, without an assembler in `PATH`.
fn explain(line: &str) -> (String, String, bool) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_galatea"));
    command.current_dir(FOLDER).args(["explain", "kernels.rs"]).args(line.split_whitespace());
    command.env_remove("GALATEA_PTXAS").env("PATH", "nothing").env("CARGO_TERM_COLOR", "never");
    let output = command.output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (text(output.stdout), text(output.stderr), output.status.success())
}

fn json(line: &str) -> Value {
    let (out, err, success) = explain(&format!("{line} --json"));
    assert!(success, "{err}");
    serde_json::from_str(&out).unwrap()
}

/// `BLESS=1` writes the expected reports.
#[test]
fn reports_are_those_of_the_files() {
    let cases = [
        ("aligned_copy", "--kernel copy T=f32 BLOCK=1024 x=1048576 y=1048576 n=1048576 --grid 1024 --gpu h100 --programs 16"),
        ("unaligned_rows", "--kernel scale_rows BLOCK=1024 x=64064 y=64064 columns=1001 factor=2.0 --grid 64"),
        ("strided_read", "--kernel every_nth BLOCK=512 x=131072 y=16384 n=16384 stride=8 --grid 32"),
        ("transposed", "--kernel transpose M=64 N=64 x=256x512 y=512x256 --grid 4,8 --gpu a100"),
        ("gathered", "--kernel gather BLOCK=512 table=100000 index=16384=below:100000 y=16384 n=16384 --grid 32"),
        ("row_sum", "--kernel row_sum BLOCK=1024 num_warps=8 x=256x8192 y=256 --grid 256 --gpu h100 --programs 4"),
        ("divided_index", "--kernel add_bias BLOCK=1024 x=64064 bias=1001 y=64064 n=64064 width=1001 --grid 63"),
        ("neighbours", "--kernel conjugated x=65536 y=65536 n=32768 --grid 32"),
        ("product", "--kernel matmul num_warps=8 x=1048576 y=1048576 z=1048576 rows=1024 columns=1024 inner=1024 --grid 8,8 --programs 2"),
        ("product_of_views", "--kernel accumulate x=128x250 y=250x64 z=8192 --grid 2"),
        ("product_in_place", "--kernel matmul_in_place x=8192 y=8192 z=16384 columns=128 --grid 1"),
        ("updates", "--kernel count BLOCK=1024 x=32768=below:100 counts=100 n=32000 --grid 32"),
    ];
    for (name, line) in cases {
        let (out, err, success) = explain(line);
        assert!(success && err.is_empty(), "{name}: {err}");
        let file = Path::new(FOLDER).join(format!("{name}.txt"));
        let expected = format!("$ galatea explain kernels.rs {line}\n{}", without_instructions(&out));
        if std::env::var_os("BLESS").is_some() {
            std::fs::write(&file, &expected).unwrap();
        }
        assert_eq!(std::fs::read_to_string(&file).unwrap_or_default(), expected, "{name}: BLESS=1 writes the file");
    }
}

/// The report without the numbers that follow from the number of instructions, which every change of the compiler changes.
fn without_instructions(report: &str) -> String {
    let is_issue_bound = report.contains("limited by instruction issue");
    let line = |line: &str| {
        let follows = line.starts_with("  issue") || (is_issue_bound && line.contains("predicted"));
        let words = line.split_whitespace().map(|word| if word.contains(|c: char| c.is_ascii_digit()) { ".." } else { word });
        if follows { format!("  {}\n", words.collect::<Vec<_>>().join(" ")) } else { format!("{line}\n") }
    };
    // The estimate of products follows from counts of bytes.
    let (usual, products) =
        report.split_once("\nproducts\n").map_or((report, String::new()), |(usual, products)| (usual, format!("\nproducts\n{products}")));
    usual.lines().map(line).collect::<String>() + &products
}

/// The access of this builtin to this tensor.
fn access<'r>(report: &'r Value, builtin: &str, tensor: &str) -> &'r Value {
    let is_it = |row: &&Value| row["builtin"] == builtin && row["tensors"][0] == tensor;
    report["accesses"].as_array().unwrap().iter().find(is_it).unwrap()
}

/// The bytes of the sectors and of the elements that lie at these indices, each once. Tensors begin at multiples of a sector.
fn by_hand(indices: impl IntoIterator<Item = usize>, bytes: usize) -> (usize, usize) {
    let elements: BTreeSet<usize> = indices.into_iter().collect();
    let sectors: BTreeSet<usize> = elements.iter().map(|element| element * bytes / 32).collect();
    (32 * sectors.len(), bytes * elements.len())
}

/// The sectors that a warp's request touches on average, and the fewest that could hold its bytes, if each thread accesses one element.
fn per_request(indices: &[usize], bytes: usize) -> (f64, f64) {
    let (mut sectors, mut least) = (0, 0);
    for request in indices.chunks(32) {
        let (own_sectors, own_elements) = by_hand(request.iter().copied(), bytes);
        sectors += own_sectors / 32;
        least += own_elements.div_ceil(32);
    }
    let requests = indices.len().div_ceil(32) as f64;
    (sectors as f64 / requests, least as f64 / requests)
}

fn check(line: &str, read: &[usize], (builtin, tensor): (&str, &str), others: &[(usize, usize)]) {
    let report = json(line);
    let row = access(&report, builtin, tensor);
    let (sectors, least) = per_request(read, 4);
    assert_eq!((row["sectors_per_request"].as_f64(), row["least_sectors_per_request"].as_f64()), (Some(sectors), Some(least)), "{line}");
    assert_eq!(row["asked_bytes"].as_f64(), Some(4.0 * read.len() as f64), "{line}");
    let own = by_hand(read.iter().copied(), 4);
    let (moved, least) = others.iter().fold(own, |sum, other| (sum.0 + other.0, sum.1 + other.1));
    let traffic = &report["traffic"];
    assert_eq!((traffic["memory_bytes"].as_f64(), traffic["least_bytes"].as_f64()), (Some(moved as f64), Some(least as f64)), "{line}");
}

/// The tiles of 512 elements have 16 warps, so that neighbouring threads access neighbouring elements of the tile.
#[test]
fn sectors_of_strides_are_those_of_a_count_by_hand() {
    for stride in [2, 3, 5, 8, 33] {
        let n = 4096;
        let line = format!("--kernel every_nth BLOCK=512 num_warps=16 x={} y={n} n={n} stride={stride} --grid 8", n * stride);
        let indices: Vec<usize> = (0..n).map(|at| at * stride).collect();
        check(&line, &indices, ("load", "x"), &[by_hand(0..n, 4)]);
    }
}

#[test]
fn the_last_tile_moves_no_more_than_its_elements() {
    let n = 4001;
    let report = json(&format!("--kernel every_nth BLOCK=512 x={} y={n} n={n} stride=3 --grid 8", 3 * n));
    let (read, written) = (by_hand((0..n).map(|at| 3 * at), 4), by_hand(0..n, 4));
    let traffic = &report["traffic"];
    assert_eq!(traffic["memory_bytes"].as_f64(), Some((read.0 + written.0) as f64));
    assert_eq!(traffic["least_bytes"].as_f64(), Some((read.1 + written.1) as f64));
}

#[test]
fn sectors_of_gathers_are_those_of_a_count_by_hand() {
    let (n, rows) = (4096, 5000);
    let indices: Vec<usize> = (0..n).map(|at| (at * at * 31 + 17 * at) % rows).collect();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("index.bin");
    std::fs::write(&file, indices.iter().flat_map(|index| (*index as i32).to_le_bytes()).collect::<Vec<u8>>()).unwrap();
    let line =
        format!("--kernel gather BLOCK=512 num_warps=16 table={rows} index={n}=@{} y={n} n={n} --grid 8 --programs all", file.display());
    check(&line, &indices, ("load", "table"), &[by_hand(0..n, 4), by_hand(0..n, 4)]);
}

#[test]
fn a_part_of_the_programs_stands_for_all() {
    let line = "--kernel copy T=f32 BLOCK=1024 x=1048576 y=1048576 n=1048576 --grid 1024";
    let (all, part) = (json(&format!("{line} --programs all")), json(&format!("{line} --programs 8")));
    assert_eq!((&part["programs_simulated"], &all["programs_simulated"]), (&8.into(), &1024.into()));
    for name in ["accesses", "traffic", "times", "resources"] {
        assert_eq!(part[name], all[name], "{name}");
    }
    // All programs read one bias, however many there are.
    let bias = json("--kernel add_bias BLOCK=1024 x=1048576 bias=1024 y=1048576 n=1048576 width=1024 --grid 1024 --programs 8");
    assert_eq!(bias["traffic"]["memory_bytes"].as_f64(), Some((2 * 2 * 1048576 + 2 * 1024) as f64));
}

/// Why the first access is not wide.
fn reason(line: &str, builtin: &str, tensor: &str) -> String {
    access(&json(line), builtin, tensor)["limits"][0]["reason"].as_str().unwrap_or("none").to_owned()
}

#[test]
fn each_reason_is_told_where_it_holds() {
    let cases = [
        ("--kernel shifted BLOCK=1024 x=4096 y=4096 n=4096 --grid 4", "load", "x", "the index is shifted by 1, not a multiple of 4"),
        (
            "--kernel segments BLOCK=1024 x=4096 starts=5=iota y=4096 --grid 4",
            "load",
            "x",
            "tiles begin at a loaded or computed element, which need not be a multiple of 4",
        ),
        ("--kernel segments BLOCK=1024 x=4096 starts=5=iota y=4096 --grid 4", "load", "starts", "a program accesses one element"),
        ("--kernel copy T=f32 BLOCK=1024 x=900 y=900 n=900 --grid 1", "load", "x", "a mask or the tensor ends within the tiles"),
        ("--kernel copy T=bf16 BLOCK=512 x=4096 y=4096 n=4096 --grid 8", "load", "x", "128 threads share 512 elements"),
        ("--kernel copy T=bf16 BLOCK=1024 x=4096 y=4096 n=4096 --grid 4", "load", "x", "none"),
        ("--kernel row_sum BLOCK=1024 x=64x8193 y=64 --grid 64", "load", "x", "tiles begin at multiples of `x.stride(0)` = 8193, not of 8"),
        ("--kernel add_bias BLOCK=1024 x=4096 bias=1024 y=4096 n=4096 width=1024 --grid 4", "load", "bias", "none"),
        ("--kernel every_nth BLOCK=512 x=4096 y=4096 n=4096 stride=1 --grid 8", "load", "x", "none"),
        (
            "--kernel every_nth BLOCK=512 x=8192 y=4096 n=4096 stride=2 --grid 8",
            "load",
            "x",
            "neighbouring elements are `stride` = 2 elements apart",
        ),
    ];
    let more = [
        (
            "--kernel add_wide x=8192 y=8192 n=8192 --grid 4",
            "load",
            "x",
            "each thread holds the elements that another access of these tiles needs",
        ),
        (
            "--kernel rotated x=64016 y=64016 n=64016 columns=4001 shift=8 --grid 63",
            "load",
            "x",
            "the index is divided by `columns` = 4001",
        ),
        (
            "--kernel padded x=4032 columns=1001 stride=1008 --grid 4",
            "store",
            "x",
            "the mask ends at `columns` = 1001, not a multiple of 4",
        ),
        ("--kernel padded x=4032 columns=1000 stride=1008 --grid 4", "store", "x", "none"),
        ("--kernel pairs M=256 x=1024x2 y=1024x2 --grid 4", "load", "x", "a row of the tile has 2 elements"),
        ("--kernel padded_rows M=32 x=1056 y=1056 --grid 1", "load", "x", "rows are 33 elements apart, not a multiple of 4"),
        ("--kernel matrix M=32 x=32x33 y=32x36 --grid 1", "load", "x", "rows are `x.stride(0)` = 33 elements apart, not a multiple of 4"),
        (
            "--kernel matrix M=32 x=32x33 y=32x36 --grid 1",
            "store",
            "y",
            "the access of `x` in line 100 keeps all accesses of these tiles from the fast path",
        ),
        (
            "--kernel chosen BLOCK=1024 x=4096 keep=4096=ones y=4096 --grid 4",
            "load",
            "x",
            "the mask may differ between neighbouring elements",
        ),
        (
            "--kernel widened BLOCK=1024 a=4096 b=4096 y=4096 --grid 4",
            "store",
            "y",
            "a request leaves gaps between threads: each thread holds more elements than it moves at once",
        ),
        ("--kernel swapped BLOCK=1024 x=4096 y=4096 --grid 4", "load", "x", "the index is not a sum of positions times strides"),
        ("--kernel largest BLOCK=1024 x=4096 y=4096 --grid 4", "atomic_max", "y", "this atomic updates one element at a time"),
    ];
    for (line, builtin, tensor, expected) in cases.into_iter().chain(more) {
        assert_eq!(reason(line, builtin, tensor), expected, "{line}");
    }
}

/// The executions of the product, the instruction, whether the launch takes the version with roles, and why there is none.
#[test]
fn products_have_their_instructions_and_the_reason_for_a_lost_fast_path() {
    let of = |line: &str| {
        let report = json(&format!("{line} --programs 1"));
        let (product, roles) = (&report["products"][0], &report["roles"]);
        let lost = roles["lost"]["reason"].as_str().unwrap_or_default().to_owned();
        let instruction = product["with_roles"].as_str().unwrap_or_default().to_owned();
        (product["executions"].as_i64(), instruction, roles["taken"].as_bool().unwrap(), lost)
    };
    let square = |n: usize| format!("--kernel matmul x={0} y={0} z={0} rows={n} columns={n} inner={n} --grid 3,3", n * n);
    let wide = "wgmma m64n128k16 bf16".to_owned();
    assert_eq!(of(&square(384)), (Some(9 * 6), wide.clone(), true, String::new()));
    assert_eq!(of(&square(380)), (Some(9 * 6), wide.clone(), false, String::new()), "380 bf16 are no multiple of 16 bytes");
    assert_eq!(of(&format!("{} M=256 num_warps=8", square(384))).1, wide);
    let lost = |line: &str| {
        let (_, instruction, taken, lost) = of(line);
        assert!(instruction.is_empty() && !taken, "{line}");
        lost
    };
    assert_eq!(lost(&format!("{} --gpu a100", square(384))), "the target has no warpgroup products");
    assert_eq!(lost(&format!("{} num_warps=2", square(384))), "the schedule has clusters, or other than 4 or 8 warps");
    assert_eq!(
        lost(&format!("{} num_warps=8 M=64 N=64", square(384))),
        "the rows of a `dot`, and its columns, are fewer than 16 for each warp"
    );
    let none = json("--kernel copy T=f32 BLOCK=1024 x=4096 y=4096 n=4096 --grid 4");
    assert_eq!((&none["products"], &none["roles"]), (&serde_json::json!([]), &Value::Null));
}

/// One multiprocessor executes one program, whose tile takes as long in the L2 as in the tensor cores.
#[test]
fn the_estimate_is_that_of_the_counts() {
    let report = json("--kernel matmul num_warps=8 x=1048576 y=1048576 z=16384 rows=128 columns=128 inner=8192 --grid 1 --programs 1");
    let estimate = &report["roles"]["version"]["estimate"];
    let us = |cycles: f64| cycles / 1.98e3;
    let expected = [
        ("tensor_us", us(2.0 * 128.0 * 128.0 * 8192.0 / 4096.0)),
        ("l2_us", us((2.0 * 128.0 * 8192.0 * 2.0 + 2.0 * 16384.0) / 64.0)),
        ("epilogue_us", us(2.0 * 16384.0 / 64.0 + 800.0)),
    ];
    for (name, time) in expected {
        let found = estimate[name].as_f64().unwrap();
        assert!((found / time - 1.0).abs() < 1e-9, "{name}: {found}, not {time}");
    }
    assert_eq!(estimate["bound"], "L2");
}

#[test]
fn the_attributes_give_values_that_they_list_once() {
    let report = json("--kernel tuned num_warps=8 x=8192 --grid 2");
    assert_eq!(access(&report, "store", "x")["dtype"], "bf16");
    assert_eq!(
        (&report["resources"]["warps_per_cta"], access(&report, "store", "x")["asked_bytes"].as_f64()),
        (&8.into(), Some(2.0 * 8192.0))
    );
    let whole = json("--kernel every_nth x=4096 y=4096 n=4096 stride=1 --grid 8");
    assert_eq!(access(&whole, "load", "x")["tile"], serde_json::json!([512]));
}

#[test]
fn programs_that_wait_for_each_other_run_together() {
    let report = json("--kernel in_turns turn=1 y=12800 --grid 100 --programs all");
    assert_eq!(access(&report, "store", "y")["asked_bytes"].as_f64(), Some(4.0 * 12800.0));
}

#[test]
fn the_calls_of_a_device_function_are_one_row() {
    let report = json("--kernel through_a_function BLOCK=1024 x=4096 y=4096 z=4096 --grid 4");
    let tensors: Vec<&Value> = report["accesses"].as_array().unwrap().iter().map(|row| &row["tensors"]).collect();
    assert_eq!(tensors, [&serde_json::json!(["x", "z"]), &serde_json::json!(["y"])]);
    assert_eq!(access(&report, "load", "x")["asked_bytes"].as_f64(), Some(2.0 * 4.0 * 4096.0));
}

#[test]
fn mistakes_say_what_to_do() {
    let cases = [
        ("--kernel nothing --grid 1", "there is no kernel `nothing` in this text", "help: there are `copy`, `scale_rows`"),
        ("--kernel unlisted x=4 --grid 1", "`BLOCK` has no value", "help: add `BLOCK=NUMBER`"),
        ("--kernel tuned T=f32 x=4 --grid 1", "the attributes list several values of `num_warps`", "help: add `num_warps=4`, or one of 8"),
        ("--kernel copy x=4 y=4 n=4 --grid 1", "the attributes list several values of `T`", "help: add `T=f16`, or one of bf16, f32, f64"),
        ("--kernel copy T=f32 BLOCK=1024 y=4 n=4 --grid 1", "`x` has no value", "help: add `x=ELEMENTS`"),
        ("--kernel copy T=f32 BLOCK=1024 x=4 y=4 --grid 1", "`n` has no value", "help: add `n=NUMBER`, of type `i64`"),
        ("--kernel copy T=i32 BLOCK=1024 x=4 y=4 n=4 --grid 1", "`i32` is no value of `T`", "help: there are"),
        ("--kernel copy T=f32 BLOK=1024 --grid 1", "`copy` has no parameter `BLOK`", "help: did you mean `BLOCK`?"),
        ("--kernel copy T=f32 BLOCK=1000 x=4 y=4 n=4 --grid 1 n=5", "`n` is given twice", "help: remove one of them"),
        ("--kernel copy T=f32 BLOCK=1024 x=four y=4 n=4 --grid 1", "`four` is no size of `x`", "help: write a number of elements"),
        ("--kernel copy T=f32 BLOCK=0 x=4 y=4 n=4 --grid 1", "the extent of a tile is a positive number, not 0", "kernels.rs:"),
        ("--kernel transpose M=64 N=64 x=4096 y=64x64 --grid 1", "`x` is a view with 2 axes, not 1", "help: give its shape: `x=64x64`"),
        (
            "--kernel every_nth BLOCK=512 x=8 y=4 n=4 stride=2 --grid 1 --assume stride=1",
            "`stride=1` is false for `stride=2`",
            "help: a launch uses a variant only if its facts hold",
        ),
        ("copy=1 --grid 1", "the file has several kernels", "help: `--kernel` and one of copy, scale_rows"),
        ("--kernel in_turns turn=1 y=128000 --grid 1000", "no thread can make progress", "help: only a part of the programs ran"),
        ("--kernel too_far x=1024 --grid 2", "element 1024 of argument `x`", "at kernels.rs:153:5"),
        ("--kernel print_them BLOCK=128 x=128 --grid 1", "`print_them` prints", "help: remove `device_print!`"),
        ("--kernel wrong BLOCK=128 x=128 y=128 --grid 1", "tile<f32, [64]>", "kernels.rs:83:"),
        ("--kernel copy T=f32 BLOCK=1024 x=4 y=4 n=4 --grid 0", "the grid has no program", "help: a launch has at least one"),
        ("--kernel copy T=f32 BLOCK=1024 x=4 y=4 n=4 --grid 1 --programs 0", "a positive number or `all` is wanted", "--programs"),
        ("--kernel copy T=f32 BLOCK=1024 x=4 y=4 n=4", "--grid <GRID>", "required"),
    ];
    for (line, what, help) in cases {
        let (out, err, success) = explain(line);
        assert!(!success && out.is_empty(), "{line}: {out}");
        assert!(err.starts_with("error: ") && err.contains(what) && err.contains(help), "{line}:\n{err}");
        assert!(!err.contains("error: error"), "{line}:\n{err}");
        assert!(!err.contains("--programs all") || err.contains("only a part"), "{line}:\n{err}");
    }
}

#[cfg(unix)]
#[test]
fn registers_are_those_of_the_assembler() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let ptxas = folder.path().join("ptxas");
    let script = "#!/bin/sh
echo \"ptxas info    : Compiling entry function 'copy' for 'sm_90a'\"
echo \"    0 bytes stack frame, 4 bytes spill stores, 8 bytes spill loads\"
echo \"ptxas info    : Used 168 registers, used 0 barriers, 380 bytes cmem[0]\"
";
    std::fs::write(&ptxas, script).unwrap();
    std::fs::set_permissions(&ptxas, std::fs::Permissions::from_mode(0o755)).unwrap();
    let line = format!("--kernel copy T=f32 BLOCK=1024 x=4096 y=4096 n=4096 --grid 4 --ptxas {}", ptxas.display());
    let report = json(&line);
    let resources = &report["resources"];
    assert_eq!((&resources["registers"], &resources["spill_bytes"]), (&168.into(), &12.into()));
    assert_eq!((&resources["ctas_per_multiprocessor"], &resources["limited_by"][0]), (&3.into(), &"registers".into()));
    assert!(explain(&line).0.contains("168 a thread, 12 B of spills (NVIDIA's assembler)"));
}
