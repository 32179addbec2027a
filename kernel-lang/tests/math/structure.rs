//! `expand_math` keeps shapes, spans and regions, and does not expand functions that the GPU computes.

use kernel_lang::dtype::Dtype;
use kernel_lang::ir::{BinaryOp, Op, Stage, UnaryOp, parse, verify};
use kernel_lang::location::Loc;
use kernel_lang::passes::expand_math;

const LOOP: &str = r#"kernel @loop(%x: ptr<f32>, %y: ptr_mut<f32>, %n: i64) file "loop.rs" {
    %0 = const {value = 0} : i64
    %1 = const {value = 1} : i64
    %2 = arange {start = 0, end = 64} : tile<i64, [64]>
    %3 = load %x, %2 : tile<f32, [64]> @2:5
    %4 = for %0, %n, %1, %3 (%5: i64, %6: tile<f32, [64]>) {
        %7 = exp %6 : tile<f32, [64]> @4:9
        %8 = sin %7 : tile<f32, [64]> @5:9
        yield %8
    } : tile<f32, [64]> @3:5
    %9 = sigmoid %4 : tile<f32, [64]> @7:5
    store %y, %2, %9 @8:5
    return
}
"#;

#[test]
fn shapes_spans_and_regions_are_preserved() {
    let mut func = parse(LOOP).unwrap();
    assert!(expand_math::run(&mut func));
    verify(&func, Stage::Tile).unwrap();
    let text = func.to_string();
    for name in [" exp ", " sin ", " sigmoid "] {
        assert!(!text.contains(name), "{name} is left in\n{text}");
    }
    let expected = parse(LOOP).unwrap();
    let spans = |func: &kernel_lang::ir::Function| {
        let mut spans: Vec<Loc> = func.all_insts().into_iter().map(|inst| func.inst(inst).loc).collect();
        spans.dedup();
        spans
    };
    assert_eq!(spans(&func), spans(&expected), "each new op has the span of the one that it replaces");
    for inst in func.all_insts() {
        for value in &func.inst(inst).results {
            let is_scalar = func.ty(*value).is_scalar();
            assert!(!is_scalar || func.ty(*value).dtype() == Dtype::I64, "a formula on tiles has no scalars");
        }
    }
    assert!(!expand_math::run(&mut func), "nothing is left to expand");
}

#[test]
fn primitives_stay() {
    let kept = ["neg", "abs", "sqrt", "floor", "ceil", "rint", "trunc"];
    for dtype in ["f32", "f64"] {
        for name in kept {
            let text = format!("kernel @f(%x: {dtype}) {{\n    %0 = {name} %x : {dtype}\n    return\n}}\n");
            let mut func = parse(&text).unwrap();
            assert!(!expand_math::run(&mut func));
            assert_eq!(func.to_string(), text);
        }
    }
    for name in [
        "exp2_approx",
        "exp2_approx_ftz",
        "log2_approx",
        "recip_approx",
        "rsqrt_approx",
        "sqrt_approx",
        "sin_approx",
        "cos_approx",
        "tanh_approx",
    ] {
        let mut func = parse(&format!("kernel @f(%x: f32) {{\n%0 = {name} %x : f32\nreturn\n}}")).unwrap();
        assert!(!expand_math::run(&mut func));
    }
    let mut func = parse("kernel @f(%a: bf16) {\n%0 = fma %a, %a, %a : bf16\nreturn\n}").unwrap();
    assert!(!expand_math::run(&mut func), "the targets have the fma of halves");
}

#[test]
fn every_function_is_expanded_for_every_float() {
    for dtype in ["f16", "bf16", "f32", "f64"] {
        for op in UnaryOp::ALL.iter().filter(|op| op.domain().contains(Dtype::F32)) {
            let mut func = parse(&format!("kernel @f(%x: {dtype}) {{\n%0 = {} %x : {dtype}\nreturn\n}}", op.name())).unwrap();
            expand_math::run(&mut func);
            verify(&func, Stage::Tile).unwrap();
            for inst in func.all_insts() {
                let on = |value| func.ty(value).dtype();
                let is_primitive = match &func.inst(inst).op {
                    Op::Unary { op, x } => match op {
                        UnaryOp::ExpApproxFtz2 => on(*x) == Dtype::F32,
                        UnaryOp::ExpApprox2 | UnaryOp::LogApprox2 | UnaryOp::RecipApprox | UnaryOp::RsqrtApprox => on(*x) == Dtype::F32,
                        UnaryOp::SqrtApprox | UnaryOp::SinApprox | UnaryOp::CosApprox | UnaryOp::TanhApprox => on(*x) == Dtype::F32,
                        UnaryOp::Neg | UnaryOp::Abs | UnaryOp::Sqrt => matches!(on(*x), Dtype::F32 | Dtype::F64),
                        UnaryOp::Floor | UnaryOp::Ceil | UnaryOp::Rint | UnaryOp::Trunc => matches!(on(*x), Dtype::F32 | Dtype::F64),
                        _ => false,
                    },
                    Op::Binary { op, lhs, .. } => !on(*lhs).is_half() && *op != BinaryOp::Rem,
                    Op::Compare { lhs, .. } => !on(*lhs).is_half(),
                    _ => true,
                };
                assert!(is_primitive, "{} of {dtype} leaves `{}`\n{func}", op.name(), func.inst(inst).op.name());
            }
        }
    }
}
