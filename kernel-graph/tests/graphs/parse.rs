//! Texts of graphs as graphs: what they compute, what they must say, and the errors of texts with mistakes. `round_trip` reads the text of each graph of these tests.

use std::time::{Duration, Instant};

use galatea::graph::Package;
use galatea::ops::{Any, Tensor};
use galatea::prelude::*;
use galatea::{Dim, Dtype};
use kernel_graph::{Environment, Graph, GraphError, Level, input};
use kernel_library::ops as library;

use crate::kernels::{mlp_op, names_op, row_sums, scale, silu, silu_op, sum_difference, times};
use crate::round_trip::{export, parsed};
use crate::{golden, gradients, numbers, opaque_text, tuned};

const EPS: f32 = 0.125;

/// Scalars of all kinds: of a type parameter, of integers that depend on dims, and an outer constant with an expression as its name.
#[kernel]
fn scalars<T: Float, const SHIFT: i32, const FLIP: bool>(
    x: Ptr<f32>,
    y: PtrMut<f32>,
    t: T,
    signed: i64,
    narrow: u32,
    big: isize,
    on: bool,
) {
    let at = program_id(0) * 16 + arange(0, 16);
    let inside = at < signed;
    let v = load(x + at, mask = inside) + SHIFT as f32 + 2.0 * EPS + t as f32 + narrow as f32 + big as f32;
    let v = if FLIP { -v } else { v };
    store(y + at, if on { v } else { 0.0 }, mask = inside);
}

fn with_scalars(x: &Tensor) -> Result<Tensor> {
    let (n, mut y) = (x.numel(), x.empty_like()?);
    let t = bf16::from_f32(0.1);
    scalars::<bf16, -3, true>(x, &mut y, t, &n, &n * 2, 3 - &n, true).grid(n.cdiv(16)).launch()?;
    Ok(y)
}

/// A plain program with views, zeros, weights, NaN and infinities.
fn mixed(x: &Tensor, weight: &Tensor) -> Result<[Tensor; 3]> {
    let mut y = silu(&with_scalars(x)?)?;
    scale(&mut y, f32::NEG_INFINITY, i32::MIN)?;
    let (sum, _) = mlp_op(&y, std::slice::from_ref(weight), None, true)?;
    let mut zeros = sum.zeros_like()?;
    times::<f32>(weight, &mut zeros, f32::from_bits(0xffc0_0001), sum.dim(0)).grid(1).launch()?;
    let rows = sum.reshape([sum.dim(0), 1.into()])?;
    Ok([sum_difference(&sum, &zeros)?.1, row_sums(&rows.slice(Dim::from(1)..sum.dim(0))?)?, zeros])
}

/// A step of training.
fn step(x: &Tensor, y: &Tensor, w: &Tensor) -> Result<[Tensor; 2]> {
    let w = w.detach().requires_grad()?;
    let loss = library::mse_loss(&library::gelu(&library::linear(x, &w, None)?)?, y)?;
    let grads = loss.backward()?;
    Ok([loss.detach(), library::sub(&w.detach(), grads.get(&w).expect("`w` requires its gradient"))?])
}

/// Graphs of all kinds, and the extents of their inputs.
fn graphs(device: &Device) -> Vec<(Graph, Vec<Vec<usize>>)> {
    let n = Dim::new("n", 2..=64);
    let (weight, f32_of_n) = (numbers(device, 16), |name: &str| input(name, [&n], Dtype::F32));
    let inference = export(|[x]| mixed(x, &weight), [f32_of_n("x")]).unwrap().named("a name with spaces");
    let rows = |name: &str, columns: i64| input(name, [&n, &Dim::from(columns)], Dtype::F32);
    let inputs = [rows("x", 4), rows("y", 3), input("w", [3, 4], Dtype::F32)];
    let training = export(|[x, y, w]| step(x, y, w), inputs).unwrap();
    let double = export(|[x]| gradients::sines_of_halves(x), [input("x", [&n], Dtype::F64)]).unwrap();
    let tuned = export(|[x]| tuned::sum_of_pairs(x), [f32_of_n("x")]).unwrap();
    vec![
        (inference, vec![vec![13]]),
        (training, vec![vec![5, 4], vec![5, 3], vec![3, 4]]),
        (double, vec![vec![7]]),
        (tuned, vec![vec![33]]),
        (opaque_text::graph(device), vec![vec![9], vec![4]]),
    ]
}

/// The constants of a graph in place of other ones of their names.
fn with_constants(environment: Environment, graph: &Graph) -> Environment {
    let plans = std::iter::once((graph.plan(), graph.plan().constant_names()));
    let on_cpu = graph.plan().on_cpu.as_deref().map(|plan| (plan, graph.plan().constant_names_on_cpu(plan)));
    let named = plans.chain(on_cpu).flat_map(|(plan, names)| names.into_iter().zip(&plan.constants));
    named.fold(environment, |environment, (name, constant)| environment.with_constant(&name, constant.tensor.clone()))
}

pub(crate) fn a_parsed_graph_computes_what_its_graph_computes(device: Device) {
    for (graph, extents) in graphs(&device) {
        let inputs: Vec<Tensor> = std::iter::zip(graph.inputs(), extents)
            .map(|(input, extents)| {
                let len = extents.iter().product();
                let x = numbers(&device, len).reshape(extents.iter().map(|extent| Dim::from(*extent)).collect::<Vec<_>>()).unwrap();
                library::convert(&x, input.ty.dtype).unwrap()
            })
            .collect();
        let run = |graph: &Graph| -> Vec<Vec<u8>> {
            let outputs = graph.compile(&device).unwrap().run(inputs.iter().collect::<Vec<_>>()).unwrap();
            outputs.iter().map(|output| output.to_bytes().unwrap()).collect()
        };
        let expected = run(&graph);
        assert_eq!(run(&parsed(&graph)), expected, "{graph}");
        // The kernels and the constants of a package serve, too.
        let package = Package::from_bytes(graph.package().to_bytes().unwrap()).unwrap();
        let environment = Environment::new().with_plan(&package.plan(&Device::cpu()).unwrap());
        let of_package = Graph::parse(&graph.to_string(), &environment).unwrap();
        assert_eq!(of_package.to_string(), graph.to_string());
        assert_eq!(run(&of_package), expected, "{graph}");
        // Kernels with the same IR are one.
        let environment = Environment::from(&graph).with_plan(&of_package.plan().clone());
        let both = Graph::parse(&graph.to_string(), &with_constants(environment, &graph)).unwrap();
        assert_eq!(run(&both), expected, "{graph}");
    }
}

/// The texts of the graphs at both levels, and what binds them.
pub(crate) fn texts() -> Vec<(String, Environment)> {
    let of_levels = |(graph, _): (Graph, _)| [Level::Kernels, Level::Ops].map(|level| (graph.text(level), Environment::from(&graph)));
    graphs(&Device::cpu()).into_iter().flat_map(of_levels).collect()
}

/// The program of the errors.
fn program() -> Graph {
    let n = Dim::new("n", 2..=640);
    let weight = numbers(&Device::cpu(), 16);
    let body = |x: &Tensor| {
        let mut y = silu_op(x)?;
        scale(&mut y, 0.5, -3)?;
        let (sum, _) = sum_difference(&y, &weight)?;
        Ok([row_sums(&sum.reshape([sum.dim(0), 1.into()])?)?, sum.zeros_like()?])
    };
    export(|[x]| body(x), [input("x", [&n], Dtype::F32)]).unwrap().named("program")
}

pub(crate) fn mistakes_in_texts_have_lines_and_columns() {
    let graph = program();
    let text = graph.to_string();
    let tuned = export(|[x]| tuned::sum_of_pairs(x), [input("x", [&Dim::new("n", 2..=64)], Dtype::F32)]).unwrap().named("tuned");
    let mut all = format!("{text}\n{tuned}\n");
    let mut case = |graph: &Graph, from: &str, to: &str| {
        let text = graph.to_string();
        let changed = if from.is_empty() { to.to_owned() } else { text.replacen(from, to, 1) };
        assert!(from.is_empty() || changed != text, "{from} is not in the text");
        let error = match Graph::parse(&changed, &Environment::from(graph)) {
            Err(GraphError::Text(error)) => error,
            other => panic!("{from} -> {to}: {other:?}"),
        };
        all += &format!("----- {from:?} -> {to:?}\n{error}\n");
    };
    // Syntax.
    for (from, to) in [
        ("", ""),
        ("", "kernel @silu() {}"),
        ("graph program", "graph"),
        ("f32[n])", "f33[n])"),
        ("f32[n])", "f32[n)"),
        ("f32[n])", "f32[m])"),
        ("f32[n])", "f32[n +])"),
        ("f32[n])", "f32[n / 0])"),
        ("n in 2..=640", "n in 9..=2"),
        ("n in 2..=640", "n in 2..640"),
        ("n in 2..=640", "n in 2..=640, n in 2..=640"),
        ("n in 2..=640", "n in 2..=640, m in 0..=1"),
        (" = constant", " = weight"),
        (" = alloc : f32[n]", " = alloc"),
        (" = alloc : f32[n]", " = alloc f32[n]"),
        (" = alloc : f32[n]", " = alloc : f32[n], f32[n]"),
        (" = alloc : f32[n]", " = malloc : f32[n]"),
        ("[cdiv(n, 64), 1, 1]", "[cdiv(n 64), 1, 1]"),
        ("[cdiv(n, 64), 1, 1]", "[cdiv(n, 64), 1]"),
        ("y = %1, n = n", "y = %1 n = n"),
        ("y = %1, n = n", "y = %1, n ="),
        ("y = %1, n = n", "y = %1, n = n as f32"),
        ("  }\n", ""),
        ("  return", "  }\n  return"),
        ("  return", "  back"),
        (" = zeros", " = \"zeros"),
        (" = zeros", " = ~zeros"),
    ] {
        case(&graph, from, to);
    }
    // Names and types.
    for (from, to) in [
        ("program(x: f32[n])", "program(x: f32[n], x: f32[n])"),
        ("program(x: f32[n])", "program(läufer: f32[n])"),
        ("@c0 = constant : f32[16]", "@c1 = constant : f32[16]"),
        ("@c0 = constant : f32[16]", "@c0 = constant : f32[15]"),
        ("@c0 = constant : f32[16]", "@c0 = constant : f32[16]\n  @c0 = constant : f32[16]"),
        ("b = @c0", "b = @weight"),
        ("launch silu_elements", "launch silu_element"),
        ("launch silu_elements", "launch anything"),
        ("<T = f32, BLOCK = 64>", "<T = f32>"),
        ("<T = f32, BLOCK = 64>", "<T = i32, BLOCK = 64>"),
        ("<T = f32, BLOCK = 64>", "<T = f64, BLOCK = 64>"),
        ("<T = f32, BLOCK = 64>", "<T = f32, BLOCK = true>"),
        ("(x = %x, y = %1", "(y = %x, x = %1"),
        ("y = %1, n = n)", "y = %1)"),
        ("y = %1, n = n)", "y = %1, n = %x)"),
        ("y = %1, n = n)", "y = 1, n = n)"),
        ("y = %1, n = n)", "y = %1, n = 0.5)"),
        ("y = %1, n = n)", "y = %1, n = n as i32)"),
        ("a = 0.5", "a = n"),
        ("b = -3", "b = 2147483648"),
        ("y = %1,", "y = %9,"),
        ("y = %1,", "y = unused,"),
        ("test::silu(x = %x)", "test::silu(x = %0)"),
        ("test::silu(x = %x)", "test::silu(y = %x)"),
        ("test::silu(x = %x)", "test::silo(x = %x)"),
        ("test::silu(x = %x) : f32[n]", "test::silu(x = %x) : f32[n - 1]"),
        ("%0 = test::silu(x = %x) : f32[n]", "%7 = test::silu(x = %x) : f32[n]"),
        (
            "",
            "graph g(x: f32[n]) where n in 0..=8\n  %0 = alloc : f32[n]\n  %0 = test::silu(x = %x) : f32[n] {\n    %1 = alloc : f32[n]\n  }\n  return %0",
        ),
        (" : f32[n], f32[n]", " : f32[n], f32[n - 1]"),
        ("%1 = alloc", "%x = alloc"),
        ("view %", "view %9"),
        (" : f32[n, 1]", " : f64[n, 1]"),
        (" : f32[n, 1]", " : f32[n]"),
        ("return %", "return @c1, %"),
    ] {
        case(&graph, from, to);
    }
    case(&tuned, "[cdiv(n, 2), 1, 1]", "[cdiv(n, 4), 1, 1]");
    case(&tuned, "of 4 configurations", "of 3 configurations");
    // A text of ops lacks the operations.
    let error = Graph::parse(&graph.text(Level::Ops), &Environment::new().with_plan(graph.plan())).unwrap_err();
    all += &format!("----- the text of ops, without a graph\n{error}\n");
    golden("parse-errors.txt", &all);
}

/// A text of ops is a program of its own: its calls have the operations of calls with the same types.
pub(crate) fn programs_of_ops_run(device: Device) {
    let n = Dim::new("n", 2..=16);
    let weight = numbers(&device, 16);
    let calls = |x: &Tensor| {
        let mut y = silu_op(x)?;
        crate::kernels::scale_op(&mut y, 0.5, -3)?;
        mlp_op(&y, std::slice::from_ref(&weight), None, true)
    };
    let environment = Environment::from(&export(|[x]| calls(x), [input("x", [&n], Dtype::F32)]).unwrap());
    let text = "graph other(a: f32[n], b: f32[n]) where n in 2..=16
  @c0 = constant : f32[16]
  %0 = test::silu(x = %b) : f32[n]
  %1, %2 = test::mlp(x = %0, weights = [@c0], bias = None, keep = true) : f32[n], f32[n]
  %3 = test::scale_(y = %2, a = 0.5, b = -3) : f32[n]
  %4 = test::silu(x = %a) : f32[n]
  return %1, %3, %4, %2
";
    let graph = Graph::parse(text, &environment).unwrap();
    assert_eq!(graph.text(Level::Ops), text);
    parsed(&graph);
    let [a, b] = [numbers(&device, 5), numbers(&device, 6).slice(1..6).unwrap()];
    let outputs = graph.compile(&device).unwrap().run([&a, &b]).unwrap();
    let (first, second) = mlp_op(&silu_op(&b).unwrap(), std::slice::from_ref(&weight), None, true).unwrap();
    let mut scaled = second.clone();
    crate::kernels::scale_op(&mut scaled, 0.5, -3).unwrap();
    for (output, expected) in outputs.iter().zip([first, scaled, silu_op(&a).unwrap(), second]) {
        assert_eq!(output.to_bytes().unwrap(), expected.to_bytes().unwrap());
    }
    // A call whose arguments are one tensor is none of two tensors. The reverse is one.
    let pair = |second: bool| {
        let body = |x: &Tensor, y: &Tensor| {
            let mut y = if second { y.clone() } else { x.clone() };
            Ok([names_op(x, 2.0, &mut y)?, y])
        };
        export(|[x, y]| body(x, y), ["x", "y"].map(|name| input(name, [&n], Dtype::F32))).unwrap()
    };
    let (one, two) = (pair(false), pair(true));
    assert!(Graph::parse(&two.text(Level::Ops), &Environment::from(&one)).is_err());
    let of_one = Graph::parse(&one.text(Level::Ops), &Environment::from(&two)).unwrap();
    let run =
        |graph: &Graph| graph.compile(&device).unwrap().run([&a, &b]).unwrap().iter().map(|y| y.to_bytes().unwrap()).collect::<Vec<_>>();
    assert_eq!(run(&of_one), run(&one));
    // Other arguments and types are other calls.
    for (from, to) in
        [("a = 0.5", "a = 0.25"), ("%b) : f32[n]", "%b) : f32[n - 1]"), ("[@c0]", "[@c0, @c0]"), ("b: f32[n]", "b: f32[n, 1]")]
    {
        let error = Graph::parse(&text.replacen(from, to, 1), &environment).unwrap_err().to_string();
        assert!(error.contains("the text lacks the operations of `test::"), "{error}");
    }
    // Two plans have a constant of this name.
    let other = export(|[x]| Ok(sum_difference(x, &numbers(&device, 16))?.0), [input("x", [&n], Dtype::F32)]).unwrap();
    let error = Graph::parse(text, &environment.clone().with_graph(&other)).unwrap_err().to_string();
    assert!(error.starts_with("line 2, column 3: the environment has several constants `c0`\n"), "{error}");
    assert!(Graph::parse(text, &environment.with_graph(&other).with_constant("c0", weight)).is_ok());
    // An op with a function for the CPU, which the text lacks.
    let halves = export(|[x]| gradients::sines_of_halves(x), [input("x", [&n], Dtype::F64)]).unwrap();
    let halves = Graph::parse(&halves.text(Level::Ops), &Environment::from(&halves)).unwrap();
    let session = halves.compile(&device);
    assert_eq!(session.is_err(), device.is_cpu());
    if let Err(error) = session {
        let reason = "it is the program of a text of ops, and `mylib::halved` has a function of its own for the CPU";
        assert!(error.to_string().contains(reason), "{error}");
    }
}

/// Spaces, comments and line breaks in lists do not matter, nor do the names of results and equal expressions.
pub(crate) fn other_spellings_are_the_same_graph() {
    let graph = program();
    let text = graph.to_string();
    let spelt = text
        .replace("graph program(", "// The program.\n\n graph\t\"program\"(\n\n")
        .replace("cdiv(n, 64)", "(n+63)/\n 64")
        .replace("%1", "%memory")
        .replacen(", n = n)", ",\n      // all of it\n      n = 1*n as usize)", 1)
        .replace("  return", "\n\n\treturn")
        .replace("}\n", "} // silu\n");
    let spelt = spelt.trim_end();
    assert_eq!(Graph::parse(spelt, &Environment::from(&graph)).unwrap().to_string(), text);
    let of_lines = Graph::parse(&text.replace('\n', "\r\n"), &Environment::from(&graph)).unwrap();
    assert_eq!(of_lines.to_string(), text);
}

pub(crate) fn names_of_all_kinds_are_told_apart() {
    let n = Dim::new("inf", 0..=16);
    let device = Device::cpu();
    let weights: Vec<Tensor> = (0..4).map(|_| numbers(&device, 16)).collect();
    let body = |x: &Tensor| {
        let mut sum = x.clone();
        for weight in &weights {
            sum = sum_difference(&sum, weight)?.0;
        }
        scale(&mut sum, f32::INFINITY, 1)?;
        with_scalars(&sum)
    };
    /// A model whose parameters have names that other values have, and names of other systems.
    struct Named(Vec<Tensor>);
    impl galatea::ops::Module for Named {
        fn visit(&self, _: &str, f: &mut dyn FnMut(&str, &Tensor)) {
            ["x", "0", "layer 0/\"weight\"\n"].into_iter().zip(&self.0).for_each(|(name, tensor)| f(name, tensor));
        }
        fn visit_mut(&mut self, _: &str, _: &mut dyn FnMut(&str, &mut Tensor) -> Result<()>) -> Result<()> {
            Ok(())
        }
    }
    let graph = kernel_graph::export(|[x]| body(x), [input("x", [&n], Dtype::F32)]).unwrap();
    let graph = graph.with_params(&Named(weights.clone())).named("läufer 2");
    let text = parsed(&graph).to_string();
    assert!(
        text.starts_with("graph \"läufer 2\"(x: f32[inf]) where inf in 0..=16\n  @x = parameter : f32[16]\n  @0 = parameter : f32[16]\n"),
        "{text}"
    );
    assert!(text.contains("  @\"layer 0/\\\"weight\\\"\\n\" = parameter : f32[16]\n  @c3 = constant : f32[16]\n"), "{text}");
    assert!(text.contains("(a = %x, b = @x, ") && text.contains("a = inf, b = 1, n = inf)"), "{text}");
    // The constant has no name, and the parameters have theirs.
    let again = parsed(&graph);
    assert_eq!(again.constants().iter().map(|constant| constant.name.is_some()).collect::<Vec<_>>(), [true, true, true, false]);
}

mod other {
    use super::*;

    /// Another kernel of the same name.
    #[kernel]
    pub(super) fn triple(x: PtrMut<f32>, n: usize) {
        let at = arange(0, 128);
        store(x + at, load(x + at, mask = at < n) * 4.0, mask = at < n);
    }
}

pub(crate) fn kernels_of_one_name_have_hashes() {
    let n = Dim::new("n", 0..=16);
    let body = |x: &Tensor| {
        let mut y = x.clone();
        crate::kernels::triple(&mut y, x.numel()).grid(1).launch()?;
        other::triple(&mut y, x.numel()).grid(1).launch()?;
        Ok(y)
    };
    let graph = export(|[x]| body(x), [input("x", [&n], Dtype::F32)]).unwrap();
    let text = graph.to_string();
    let hashes: Vec<&str> = text.lines().filter_map(|line| Some(&line.split_once("launch triple#")?.1[..8])).collect();
    assert!(hashes.len() == 2 && hashes[0] != hashes[1], "{text}");
    let x = numbers(&Device::cpu(), 3);
    let run =
        |text: &str| Graph::parse(text, &Environment::from(&graph)).map(|graph| graph.compile(&Device::cpu()).unwrap().run([&x]).unwrap());
    assert_eq!(run(&text).unwrap()[0].to_vec::<f32>().unwrap(), [-36.0, -27.0, -18.0]);
    let thrice = text.replace(hashes[1], hashes[0]);
    assert_eq!(run(&thrice).unwrap()[0].to_vec::<f32>().unwrap(), [-27.0, -20.25, -13.5], "the text says which kernel runs");
    assert!(run(&text.replace(hashes[0], &hashes[0][..4])).is_ok(), "some digits tell them apart");
    let error = run(&text.replacen(&format!("#{}", hashes[0]), "", 1)).unwrap_err().to_string();
    let help = format!("help: write `triple#{}` or `triple#{}`", hashes[0], hashes[1]);
    let unknown = run(&text.replacen(hashes[0], "00000000", 1)).unwrap_err().to_string();
    assert!(unknown.contains("the environment has no kernel `triple#00000000`\n") && unknown.ends_with(&help), "{unknown}");
    assert!(error.contains("the environment has 2 kernels `triple`\n") && error.ends_with(&help), "{error}");
}

pub(crate) fn scalars_keep_their_bits_and_types() {
    let n = Dim::new("n", 0..=16);
    let body = |x: &Tensor| {
        let mut y = with_scalars(x)?;
        times::<f32>(x, &mut y, f32::from_bits(0xffc0_0001), x.dim(0)).grid(1).launch()?;
        scale(&mut y, f32::NAN, i32::MIN)?;
        let mut z = x.empty_like()?;
        times::<Any>(&y, &mut z, 1e-45f32, x.dim(0)).grid(1).launch()?;
        Ok(z)
    };
    let graph = export(|[x]| body(x), [input("x", [&n], Dtype::F32)]).unwrap();
    let text = graph.to_string();
    let launch = "launch scalars<T = bf16, SHIFT = -3, FLIP = 1> [cdiv(n, 16), 1, 1] (x = %x, y = %0, t = 0.100097656, signed = n as i64, narrow = 2*n, big = -n + 3 as isize, on = true, ";
    assert!(text.contains(launch) && text.contains("\"2.0 * EPS\" = 0.25)"), "{text}");
    for part in ["a = 0xffc00001, n = n)", "a = NaN, b = -2147483648, n = n)", "a = 1e-45, n = n)"] {
        assert!(text.contains(part), "{part} in {text}");
    }
    let words = |graph: &Graph| -> Vec<String> { graph.nodes().iter().map(|node| format!("{:?}", node.op)).collect() };
    let without_sites = |text: String| text.split(", location: ").next().unwrap_or_default().to_owned();
    let [own, of_text] = [&graph, &parsed(&graph)].map(|graph| words(graph).into_iter().map(without_sites).collect::<Vec<_>>());
    assert_eq!(own, of_text, "keys, words and types of integers are the same");
}

pub(crate) fn calls_nest_up_to_a_limit() {
    let text = |depth: usize| {
        let open: String = (0..depth).map(|_| "%0 = test::silu(x = %x) : f32[n] {\n").collect();
        let close = "}\n".repeat(depth);
        format!("graph deep(x: f32[n]) where n in 0..=8\n{open}%0 = alloc : f32[n]\n{close}return %0\n")
    };
    let graph = Graph::parse(&text(256), &Environment::new()).unwrap();
    assert_eq!(graph.calls().len(), 256);
    parsed(&graph);
    assert!(graph.tabular(Level::Kernels).contains("empty") && graph.dot(Level::Kernels).contains("cluster255"));
    let error = Graph::parse(&text(100_000), &Environment::new()).unwrap_err().to_string();
    assert!(error.starts_with("line 258, column 6: more than 256 calls contain each other\n"), "{error}");
    // Other parts of a text have limits, too.
    let deep = |extent: &str| format!("graph deep(x: f32[n]) where n in 0..=8\n%0 = alloc : f32[{extent}]\nreturn %0\n");
    for extent in ["(".repeat(100_000), "-".repeat(100_000), "n*".repeat(20_000) + "n", "cdiv(".repeat(50_000), "(n+1)*".repeat(5000) + "n"]
    {
        let start = Instant::now();
        let error = Graph::parse(&deep(&extent), &Environment::new()).unwrap_err().to_string();
        assert!(error.starts_with("line 2, column ") && error.len() < 1000 && start.elapsed() < Duration::from_secs(10), "{error}");
    }
}
