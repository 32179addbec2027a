//! Generated kernels in Rust: deep in one way, of a size that is given.

/// A kernel with that body.
fn kernel(body: &str) -> String {
    format!("#[kernel]\nfn k(y: PtrMut<f32>, n: usize, m: usize) {{\n{body}\n}}\n")
}

/// A kernel's source, of a size.
type Source = fn(usize) -> String;

/// Nested constructs: the name, a kernel with the construct nested to a depth, and a depth beyond the limit. Each compiles at depth 30.
pub(crate) const NESTED: &[(&str, Source, usize)] = &[
    ("parentheses", |depth| kernel(&format!("store(y, {}1.0{});", "(".repeat(depth), ")".repeat(depth))), 2_000),
    ("a sum", |depth| kernel(&format!("let a = load(y);\nstore(y, a{});", " + a".repeat(depth))), 2_000),
    ("negations", |depth| kernel(&format!("let a = load(y);\nstore(y, {}a);", "-".repeat(depth))), 2_000),
    ("inversions", |depth| kernel(&format!("if {}(n > m) {{ store(y, 1.0); }}", "!".repeat(depth))), 2_000),
    ("methods", |depth| kernel(&format!("let a = load(y){};\nstore(y, a);", ".exp()".repeat(depth))), 2_000),
    ("casts", |depth| kernel(&format!("let a = load(y){};\nstore(y, a);", " as f32".repeat(depth))), 2_000),
    ("calls", |depth| kernel(&format!("let a = load(y);\nstore(y, {}a{});", "exp(".repeat(depth), ")".repeat(depth))), 2_000),
    ("blocks", |depth| kernel(&format!("{}store(y, 1.0);{}", "{".repeat(depth), "}".repeat(depth))), 2_000),
    ("branches", |depth| kernel(&format!("{}store(y, 1.0);{}", "if n > m {".repeat(depth), "}".repeat(depth))), 2_000),
    ("loops", |depth| kernel(&format!("{}store(y, 1.0);{}", "for i in 0..n {".repeat(depth), "}".repeat(depth))), 2_000),
    ("a chain of `else if`", |depth| kernel(&format!("if n > m {{}} {}", "else if n > 2 { store(y, 1.0); }".repeat(depth))), 2_000),
    (
        "a `match`",
        |depth| {
            let branches: String = (0..depth).map(|at| format!("{at} => {{ store(y, 1.0); }}\n")).collect();
            kernel(&format!("match n {{ {branches} _ => {{}} }}"))
        },
        2_000,
    ),
    ("early exits", |depth| kernel(&format!("for i in 0..n {{ {} }}", "if i > m { continue; }\nstore(y, 1.0);\n".repeat(depth))), 2_000),
    (
        "closures",
        |depth| {
            let closures: String = (1..=depth).map(|at| format!("let part{at} = |x| part{}(x) + 1.0;\n", at - 1)).collect();
            kernel(&format!("let part0 = |x| x + 1.0;\n{closures}store(y, part{depth}(load(y)));"))
        },
        2_000,
    ),
    (
        "functions",
        |depth| {
            let functions: String = (1..=depth)
                .map(|at| format!("#[device]\nfn part{at}(x: Value<f32>) -> Value<f32> {{ part{}(x) + 1.0 }}\n", at - 1))
                .collect();
            let first = "#[device]\nfn part0(x: Value<f32>) -> Value<f32> { x + 1.0 }\n";
            format!("{first}{functions}{}", kernel(&format!("store(y, part{depth}(load(y)));")))
        },
        200,
    ),
];

/// Functions each of which calls the one before twice.
pub(crate) fn doubling_functions(depth: usize) -> String {
    let functions: String =
        (1..=depth).map(|at| format!("#[device]\nfn part{at}(x: Value<f32>) -> Value<f32> {{ part{0}(part{0}(x)) }}\n", at - 1)).collect();
    let first = "#[device]\nfn part0(x: Value<f32>) -> Value<f32> { x + 1.0 }\n";
    format!("{first}{functions}{}", kernel(&format!("store(y, part{depth}(load(y)));")))
}

/// Closures each of which calls the one before twice.
pub(crate) fn doubling_closures(depth: usize) -> String {
    let closures: String = (1..=depth).map(|at| format!("let part{at} = |x| part{0}(part{0}(x));\n", at - 1)).collect();
    kernel(&format!("let part0 = |x| x + 1.0;\n{closures}store(y, part{depth}(load(y)));"))
}

/// Constants each of which is made of the one before twice.
pub(crate) fn doubling_constants(depth: usize) -> String {
    let constants: String = (1..=depth).map(|at| format!("let c{at} = c{0} * c{0} + N;\n", at - 1)).collect();
    let body = format!("let c0 = N;\n{constants}store(y + arange(0, c{depth}), zeros::<f32>([c{depth}]));");
    kernel(&body).replace("fn k(", "fn k<const N: usize>(").replace("#[kernel]", "#[kernel(N = [1])]")
}

/// The kernel that never compiled: a value that is shared, in front of a loop with a masked store.
pub(crate) fn shared_in_a_loop(depth: usize) -> String {
    kernel(&format!(
        "let lanes = arange(0, 1024);\nlet mut v = lanes as f32;\nfor _ in static_range(0, {depth}) {{ v = v * v + v; }}
        for i in 0..m {{ store(y + i * n + lanes, v, mask = lanes < n); }}"
    ))
}

/// Statements, one behind the other.
pub(crate) fn statements(count: usize) -> String {
    let lines: String = (1..=count).map(|at| format!("let a{at} = a{} + first;\n", at - 1)).collect();
    kernel(&format!("let first = load(y);\nlet a0 = first;\n{lines}store(y, a{count});"))
}
