//! Every elementwise op on every element type that it takes, and every cast, as a kernel of its own: on the CPU, on simulated GPUs,
//! and on a GPU where there is one, against the op's meaning on one element. Math functions are held to their bounds in ulp against `f64`. Where there is
//! an assembler, the PTX of each goes through it.

mod accuracy;
mod assemble;
#[path = "../devices/mod.rs"]
mod devices;
mod element;

use galatea::prelude::*;
use galatea::{__private as private, Dtype};
use kernel_lang::ir::{BinaryOp, CompareOp, ConstExpr, Domain, UnaryOp};
use kernel_lang::scalar::{self, Scalar};
use libtest_mimic::{Arguments, Failed, Trial};

use element::{inputs, run};

/// A kernel of one op: its text, and what it computes of one element of each input.
struct Case {
    name: String,
    /// The op applied to `%a`, `%b`, `%c`, with its attributes.
    op: String,
    from: Dtype,
    to: Dtype,
    meaning: Meaning,
}

enum Meaning {
    /// These bits; any NaN is as good as another.
    Exact(Box<dyn Fn([Scalar; 3]) -> Option<Scalar> + Send + Sync>),
    /// Within the bound of [`accuracy`].
    Math(UnaryOp),
    /// A quotient within 2 ulp, where neither side nor the result is subnormal.
    FastQuotient,
}

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    let exact = |f: Box<dyn Fn([Scalar; 3]) -> Option<Scalar> + Send + Sync>| Meaning::Exact(f);
    for dtype in Dtype::ALL {
        for op in UnaryOp::ALL.iter().copied().filter(|op| op.domain().contains(dtype)) {
            if accuracy::is_primitive(op) && dtype != Dtype::F32 {
                continue; // only the expansion of f32 functions makes these
            }
            let meaning =
                if accuracy::bound(op, dtype).is_some() { Meaning::Math(op) } else { exact(Box::new(move |[a, ..]| scalar::unary(op, a))) };
            cases.push(Case { name: format!("{}_{dtype}", op.name()), op: format!("{} %a", op.name()), from: dtype, to: dtype, meaning });
        }
        for op in BinaryOp::ALL.iter().copied().filter(|op| op.domain().contains(dtype)) {
            let is_fast = op == BinaryOp::DivApprox && dtype != Dtype::F64;
            let meaning = if is_fast { Meaning::FastQuotient } else { exact(Box::new(move |[a, b, _]| scalar::binary(op, a, b))) };
            cases.push(Case {
                name: format!("{}_{dtype}", op.name()),
                op: format!("{} %a, %b", op.name()),
                from: dtype,
                to: dtype,
                meaning,
            });
        }
        for op in [BinaryOp::Div, BinaryOp::Rem, BinaryOp::Shl, BinaryOp::Shr] {
            for constant in constants(op, dtype) {
                let k = Scalar::from_const(&ConstExpr::Int(constant), dtype).expect("it fits");
                cases.push(Case {
                    name: format!("{}_{dtype}_by_{constant}", op.name()),
                    op: format!("{} %a, const {constant}", op.name()),
                    from: dtype,
                    to: dtype,
                    meaning: exact(Box::new(move |[a, ..]| scalar::binary(op, a, k))),
                });
            }
        }
        for op in CompareOp::ALL.iter().copied() {
            let meaning = exact(Box::new(move |[a, b, _]| scalar::compare(op, a, b)));
            cases.push(Case {
                name: format!("{}_{dtype}", op.name()),
                op: format!("{} %a, %b", op.name()),
                from: dtype,
                to: Dtype::Bool,
                meaning,
            });
        }
        if Domain::Float.contains(dtype) {
            let meaning = exact(Box::new(|[a, b, c]| scalar::fma(a, b, c)));
            cases.push(Case { name: format!("fma_{dtype}"), op: "fma %a, %b, %c".into(), from: dtype, to: dtype, meaning });
        }
        for to in Dtype::ALL {
            let meaning = exact(Box::new(move |[a, ..]| Some(scalar::cast(a, to))));
            cases.push(Case { name: format!("cast_{dtype}_{to}"), op: "cast %a".into(), from: dtype, to, meaning });
            if dtype.bits() == to.bits() && dtype != Dtype::Bool {
                let meaning = exact(Box::new(move |[a, ..]| scalar::bitcast(a, to)));
                cases.push(Case { name: format!("bitcast_{dtype}_{to}"), op: "bitcast %a".into(), from: dtype, to, meaning });
            }
        }
        // The condition is computed: `a < b`.
        let meaning = exact(Box::new(|[a, b, c]| scalar::select(scalar::compare(CompareOp::Lt, a, b)?, b, c)));
        cases.push(Case { name: format!("select_{dtype}"), op: "select %cond, %b, %c".into(), from: dtype, to: dtype, meaning });
    }
    cases
}

/// Constants that a target may have a shorter way for.
fn constants(op: BinaryOp, dtype: Dtype) -> Vec<i128> {
    let bits = dtype.bits() as i128;
    let numbers: Vec<i128> = match op {
        BinaryOp::Div | BinaryOp::Rem => vec![0, 1, 2, 3, 7, 10, 64, 100, 1000, 12_672, (1 << 31) + 1, -1, -2, -7, -64, i64::MIN.into()],
        _ => vec![0, 1, 5, bits - 1, bits, 100, -1],
    };
    let fits = |number: &i128| {
        let number = ConstExpr::Int(*number);
        Scalar::from_const(&number, dtype).is_some_and(|scalar| scalar.to_const() == number)
    };
    numbers.into_iter().filter(|number| Domain::Int.contains(dtype) && fits(number)).collect()
}

/// The kernel's text; a block is longer than the number of threads, so that threads hold several elements.
fn text(case: &Case) -> String {
    let Case { op, from, to, .. } = case;
    let load = |name: &str| format!("    %{name} = load %{name}_in, %at {{mask = %inside}} : tile<{from}, [1024]>\n");
    let (op, constant) = match op.split_once("const ") {
        Some((op, value)) => (format!("{op}%constant"), format!("    %constant = const {{value = {value}}} : tile<{from}, [1024]>\n")),
        None => (op.clone(), String::new()),
    };
    let cond = if op.contains("%cond") { "    %cond = lt %a, %b : tile<bool, [1024]>\n" } else { "" };
    format!(
        "kernel @op(%a_in: ptr<{from}>, %b_in: ptr<{from}>, %c_in: ptr<{from}>, %out: ptr_mut<{to}>, %n: i64) {{
    %pid = program_id : i64
    %block = const {{value = 1024}} : i64
    %start = mul %pid, %block : i64
    %start_tile = broadcast %start : tile<i64, [1024]>
    %lane = arange {{start = 0, end = 1024}} : tile<i64, [1024]>
    %at = add %start_tile, %lane : tile<i64, [1024]>
    %end = broadcast %n : tile<i64, [1024]>
    %inside = lt %at, %end : tile<bool, [1024]>
{}{}{}{cond}{constant}    %result = {op} : tile<{to}, [1024]>
    store %out, %at, %result {{mask = %inside}}
    return
}}
",
        load("a"),
        load("b"),
        load("c"),
    )
}

fn check(case: &Case, device: &Device) -> Result<(), Failed> {
    let operands = inputs(case.from, &case.name);
    let text = text(case);
    let got = run(device, &text, case.from, case.to, &operands)?;
    let mut worst = 0.0f64;
    for (index, got) in got.iter().enumerate() {
        let [a, b, c] = [0, 1, 2].map(|i| Scalar::from_bits(case.from, operands[i][index]));
        let got = Scalar::from_bits(case.to, *got);
        let found = || format!("{} of ({a:?}, {b:?}, {c:?}) is {got:?}", case.op);
        match &case.meaning {
            Meaning::Exact(meaning) => {
                let want = meaning([a, b, c]).ok_or("the op has no meaning here")?;
                if got != want && !(element::is_nan(got) && element::is_nan(want)) {
                    return Err(format!("{}, not {want:?}", found()).into());
                }
            }
            Meaning::FastQuotient => {
                let (a, b) = (element::as_f64(a), element::as_f64(b));
                let is_normal = |x: f64| x == 0.0 || !x.is_finite() || x.abs() >= 2f64.powi(-126);
                if is_normal(a) && is_normal(b) && is_normal(a / b) {
                    let error = accuracy::distance(a / b, got, 0.0);
                    if error.is_nan() || error > 2.0 {
                        return Err(format!("{}: {error:.2} ulp off, allowed 2", found()).into());
                    }
                    worst = worst.max(error);
                }
            }
            Meaning::Math(op) => {
                let error = accuracy::ulps(*op, a, got);
                let bound = accuracy::bound(*op, case.from).unwrap_or(0.0);
                if error.is_nan() || error > bound {
                    return Err(format!("{}: {error:.2} ulp off, allowed {bound}", found()).into());
                }
                worst = worst.max(error);
            }
        }
    }
    Ok(())
}

fn main() {
    let arguments = Arguments::from_args();
    let columns = devices::columns(0);
    let mut trials = Vec::new();
    for case in cases() {
        let case = std::sync::Arc::new(case);
        let as_ptx = case.clone();
        trials.push(match assemble::assembler() {
            Some(assembler) => {
                Trial::test(format!("ptxas::{}", case.name), move || assemble::check(&as_ptx.name, &text(&as_ptx), &assembler))
            }
            None => skipped(format!("ptxas::{}", case.name), "skipped: no assembler"),
        });
        trials.extend(columns.iter().map(|column| {
            let on_device = case.clone();
            column.trial(&case.name, move |device| check(&on_device, &device))
        }));
    }
    libtest_mimic::run(&arguments, trials).exit();
}

fn skipped(name: String, reason: &str) -> Trial {
    Trial::test(name, || Ok(())).with_ignored_flag(true).with_kind(reason)
}

/// Launches a kernel of three inputs and one output given as text.
fn launch<T: private::Element, U: private::Element>(
    device: &Device,
    text: &str,
    operands: &[Vec<T>; 3],
    out: &mut Tensor<U>,
) -> galatea::Result<()> {
    use private::{Args, Kernel, Launch, Param, ParamKind, Schedule};
    const PARAMS: &[Param] = &[
        Param { name: "a_in", kind: ParamKind::Pointer },
        Param { name: "b_in", kind: ParamKind::Pointer },
        Param { name: "c_in", kind: ParamKind::Pointer },
        Param { name: "out", kind: ParamKind::PointerMut },
        Param { name: "n", kind: ParamKind::Scalar },
    ];
    // A kernel is a static of the program; these live as long as the test.
    let text: &'static str = Box::leak(text.to_string().into_boxed_str());
    // SAFETY: the text is of a safe kernel with these parameters.
    let kernel: &'static Kernel = Box::leak(Box::new(unsafe { Kernel::new("op", text, Schedule::DEFAULT, PARAMS, &[]) }));
    let len = out.len();
    let [a, b, c] = operands.each_ref().map(|operand| device.tensor(operand));
    let (a, b, c) = (a?, b?, c?);
    let mut args: Args<'_, 9> = Args::new(kernel);
    args.pointer("a_in", &a);
    args.pointer("b_in", &b);
    args.pointer("c_in", &c);
    args.pointer_mut("out", out);
    args.scalar(len);
    // SAFETY: these are arguments of the parameters, of the types that the text has.
    unsafe { Launch::<'_, 9, 0>::new(args, []) }.grid(cdiv(len, 1024)).launch()
}
