//! Opaque ops in the text of graphs: arguments of each type, and the errors of calls with mistakes.

use galatea::graph::{Graph, GraphError, NodeOp, Package};
use galatea::ops::{ExternArg, Tensor};
use galatea::prelude::*;
use galatea::{Dim, Dtype};
use kernel_graph::{Environment, input};

use crate::kernels::scale;
use crate::opaque::{all, ordered_silu};
use crate::packages::changed;
use crate::round_trip::{export, parsed};
use crate::{golden, numbers};

/// A call of each kind. The dims have names that are also arguments of other types.
pub(crate) fn graph(device: &Device) -> Graph {
    let weight = numbers(device, 3);
    let (none, f32_) = (Dim::new("None", 2..=64), Dim::new("f32", 1..=4));
    let body = |x: &Tensor, y: &Tensor| {
        let (mut y, sorted) = (y.clone(), ordered_silu(x)?);
        let (a, b) = all(&sorted, &mut y, None, &[], &[x, &weight], 2, &none, &f32_ - 3, 0.1, -1e-9, true, "None", Dtype::I64)?;
        scale(&mut y, 2.0, 1)?;
        let list = [weight.clone(), y.clone()];
        let (c, d) = all(&a, &mut y, Some(&weight), &list, &[], 3, &Dim::from(-4), &none * 2, -0.5, 1e9, false, "a, \"b\"\n", Dtype::F32)?;
        Ok([b, y, c, d])
    };
    export(|[x, y]| body(x, y), [input("x", [&none], Dtype::F32), input("y", [&f32_], Dtype::F32)]).unwrap().named("opaque")
}

pub(crate) fn a_graph_has_arguments_of_each_type() {
    assert_eq!(
        graph(&Device::cpu()).to_string(),
        "graph opaque(x: f32[None], y: f32[f32]) where None in 2..=64, f32 in 1..=4
  @c0 = constant : f32[3]
  %0 = opaque::ordered_silu(x = %x) : f32[None] {
    %1 = alloc : f32[None]
    %2 = launch silu_elements<T = f32, BLOCK = 64> [1, 1, 1] (x = %x, y = %1, n = None) : f32[None]
    %0 = extern opaque::sort(x = %2, descending = true) : f32[None] flops 3*None
  }
  %3, %4, %5 = extern opaque::all(x = %0, y = %y, bias = None, list = [], borrowed = [%x, @c0], n = 2, m = None, d = f32 - 3, a = 0.10000000149011612, b = -1e-9, on = true, text = \"None\", dtype = i64) : f32[None], i64[2], f32[f32]
  %6 = launch scale_elements [1, 1, 1] (y = %5, a = 2.0, b = 1, n = f32) : f32[f32]
  %7, %8, %9 = extern opaque::all(x = %3, y = %6, bias = @c0, list = [@c0, %6], borrowed = [], n = 3, m = -4, d = 2*None, a = -0.5, b = 1000000000.0, on = false, text = \"a, \\\"b\\\"\\n\", dtype = f32) : f32[None], f32[3], f32[f32]
  return %4, %9, %7, %8
"
    );
}

/// The arguments of the calls of opaque ops, with the bits of numbers.
fn arguments(graph: &Graph) -> Vec<String> {
    let bits = |arg: &ExternArg| match arg {
        ExternArg::Float(number) => format!("{:#x}", number.to_bits()),
        other => format!("{other:?}"),
    };
    let calls = graph.nodes().iter().filter_map(|node| if let NodeOp::Extern(call) = &node.op { Some(call) } else { None });
    calls.flat_map(|call| call.arguments().iter().map(bits)).collect()
}

pub(crate) fn arguments_keep_their_values() {
    let texts = ["", "\"", "\\", "\u{301}\u{0}\t\r\n'", "// no comment", "%x, @c0) : f32[1] {", "\u{2028}\u{1f600}"];
    let numbers = [f64::NAN, f64::from_bits(0x7ff8_0000_0000_0001), -f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0, 5e-324, f64::MAX];
    let dims: [fn(&Dim) -> Dim; 5] = [|_| Dim::from(i64::MIN), |n| -n, |n| n.cdiv(3) * n, |n| n % 5, |n| n.clone()];
    for (number, dtype) in Dtype::ALL.into_iter().enumerate() {
        for name in ["n", "None", "true", "inf", "NaN", "f64", "unused", "e5"] {
            let n = Dim::new(name, 1..=9);
            let (text, of) = (texts[number % texts.len()], dims[number % dims.len()](&n));
            let (a, b) = (f32::from_bits(0x3f80_0001 + number as u32), numbers[number % numbers.len()]);
            let body = |x: &Tensor| Ok(all(x, &mut x.clone(), Some(x), &[], &[x, x], number, &of, n.clone(), a, b, true, text, dtype)?.0);
            let graph = export(|[x]| body(x), [input("x", [&n], Dtype::F32)]).unwrap();
            let own = arguments(&graph);
            assert_eq!(own.len(), 13);
            assert_eq!(arguments(&parsed(&graph)), own, "{graph}");
        }
    }
}

pub(crate) fn mistakes_in_calls_have_lines_and_columns() {
    let graph = graph(&Device::cpu());
    let text = graph.to_string();
    let mut all = format!("{text}\n");
    let mut case = |environment: &Environment, from: &str, to: &str| {
        let changed = text.replacen(from, to, 1);
        assert!(from.is_empty() || changed != text, "{from} is not in the text");
        let error = match Graph::parse(&changed, environment) {
            Err(GraphError::Text(error)) => error,
            other => panic!("{from} -> {to}: {other:?}"),
        };
        all += &format!("----- {from:?} -> {to:?}\n{error}\n");
    };
    let environment = Environment::from(&graph);
    for (from, to) in [
        // Ops.
        ("extern opaque::sort", "extern opaque::srot"),
        ("extern opaque::sort", "extern sort"),
        ("extern opaque::sort", "extern test::silu"),
        ("extern opaque::sort", "extern"),
        ("extern opaque::sort", "opaque::sort"),
        // Parameters.
        ("descending = true", "ascending = true"),
        (", descending = true", ""),
        ("opaque::sort(x = %2, descending = true)", "opaque::sort()"),
        ("opaque::sort(x = %2, descending = true)", "opaque::sort(x = %2 descending = true)"),
        // Tensors.
        ("(x = %2", "(x = %9"),
        ("(x = %2", "(x = [%2]"),
        ("(x = %2", "(x = None"),
        ("(x = %2", "(x = unused"),
        ("y = %y", "y = None"),
        ("bias = None", "bias = 0"),
        ("bias = None", "bias = []"),
        ("list = []", "list = %x"),
        ("list = []", "list = [%9]"),
        ("list = []", "list = [None]"),
        ("[%x, @c0]", "[%x @c0]"),
        ("[%x, @c0]", "[%x, @c0"),
        // Other arguments.
        ("n = 2,", "n = 0.5,"),
        ("n = 2,", "n = %x,"),
        ("n = 2,", "n = i64,"),
        ("n = 2,", "n = 9223372036854775808,"),
        ("m = None,", "m = None as i64,"),
        ("m = None,", "m = other,"),
        ("m = None,", "m = None / 0,"),
        ("a = 0.1", "a = f64, b = 0.1"),
        ("a = 0.10000000149011612", "a = f32"),
        ("a = 0.10000000149011612", "a = 0x1ffffffffffffffff"),
        ("on = true", "on = 1"),
        ("text = \"None\"", "text = None"),
        ("text = \"None\"", "text = \"\\q\""),
        ("dtype = i64", "dtype = i65"),
        ("dtype = i64", "dtype = \"i64\""),
        ("y = %1, n = None", "y = [%1], n = None"),
        ("y = %1, n = None", "y = %1, n = [%1]"),
        // Results.
        ("i64[2], f32[f32]", "i64[2]"),
        ("%3, %4, %5 = ", "%3, %4 = "),
        ("i64[2], f32[f32]", "i64[2], f32[f32 - 1]"),
        ("%3, %4, %5 = extern opaque::all", "%3, %4, %5 = extern opaque::sort"),
        (
            "%0 = extern opaque::sort(x = %2, descending = true) : f32[None]",
            "%0, %q = extern opaque::sort(x = %2, descending = true) : f32[None], f32[None]",
        ),
        ("%0 = extern", "extern"),
        ("f32[None] flops 3*None", "f32[None] flops"),
        ("f32[None] flops 3*None", "f32[None] {"),
        ("f32[None] flops 3*None", "f32[None] flops 3*n"),
    ] {
        case(&environment, from, to);
    }
    case(
        &environment,
        "%0 = extern opaque::sort(x = %2, descending = true) : f32[None] flops 3*None",
        "extern opaque::sort(x = %2, descending = true)",
    );
    // The schemas of a package are those of the program that wrote it.
    let package = Package::from_bytes(graph.package().to_bytes().unwrap()).unwrap();
    let of = |change: &dyn Fn(String) -> String| {
        let bytes = changed(&package, "plan.json", change);
        let package = Package::from_bytes(changed(&Package::from_bytes(bytes).unwrap(), "manifest.json", change)).unwrap();
        Environment::new().with_plan(&package.plan(&Device::cpu()).unwrap())
    };
    let other = of(&|text| text.replace("opaque::sort(Tensor x, bool descending)", "opaque::sort(Tensor x, bool ascending)"));
    case(&other, "@c0 = constant", "@c0 = constant ");
    case(&other, "descending = true", "ascending = true");
    let absent = of(&|text| text.replace("opaque::sort(", "opaque::sorted("));
    case(&absent, "opaque::sort(", "opaque::sorted(");
    golden("opaque-errors.txt", &all);
}
