//! The allowed error of each math function, and the error of a result.

use galatea::Dtype;
use kernel_lang::ir::UnaryOp;
use kernel_lang::scalar::Scalar;

use crate::element::as_f64;

/// Is it an instruction of the device that only expansions use?
pub(crate) fn is_primitive(op: UnaryOp) -> bool {
    use UnaryOp::{CosApprox, ExpApprox2, ExpApproxFtz2, LogApprox2, RecipApprox, RsqrtApprox, SinApprox, SqrtApprox, TanhApprox};
    matches!(op, ExpApprox2 | ExpApproxFtz2 | LogApprox2 | RecipApprox | RsqrtApprox | SqrtApprox | SinApprox | CosApprox | TanhApprox)
}

/// The allowed error in units in the last place; `None` for ops that are exact.
pub(crate) fn bound(op: UnaryOp, dtype: Dtype) -> Option<f64> {
    let single = match op {
        UnaryOp::Exp => {
            if dtype == Dtype::F32 {
                2.5
            } else {
                2.0
            }
        }
        UnaryOp::Exp2 | UnaryOp::Log | UnaryOp::Log2 | UnaryOp::Rsqrt | UnaryOp::Sin | UnaryOp::Cos | UnaryOp::Erf => 2.0,
        UnaryOp::Tanh | UnaryOp::Sigmoid => 3.0,
        UnaryOp::Tan => 4.0,
        UnaryOp::ExpApprox2 | UnaryOp::ExpApproxFtz2 | UnaryOp::RecipApprox | UnaryOp::RsqrtApprox | UnaryOp::SqrtApprox => 2.0,
        UnaryOp::SinApprox | UnaryOp::CosApprox => 1.0,
        // A relative error of 2^-11.
        UnaryOp::TanhApprox => 8192.0,
        // Its error is absolute near 1: `ulps` allows for it.
        UnaryOp::LogApprox2 => 4.0,
        _ => return None,
    };
    Some(if dtype.is_half() { 1.0 } else { single })
}

/// The distance of `got` from the exact value in units in the last place of the exact value's binade; 0 where both are NaN or infinite alike.
pub(crate) fn ulps(op: UnaryOp, x: Scalar, got: Scalar) -> f64 {
    // Subnormals may count as zero here.
    if op == UnaryOp::RecipApprox && !(as_f64(x).abs() >= 2f64.powi(-126) && as_f64(x).abs() <= 2f64.powi(126)) {
        return 0.0;
    }
    // Results that small may be zero, and lg2 near 1 has an absolute error.
    let slack = match op {
        UnaryOp::Sigmoid if matches!(got.dtype(), Dtype::F32 | Dtype::Bf16) => 2f64.powi(-126),
        UnaryOp::ExpApproxFtz2 if matches!(got.dtype(), Dtype::F32 | Dtype::Bf16) => 2f64.powi(-126),
        UnaryOp::LogApprox2 => 2f64.powi(-21),
        // For |x| <= pi; beyond, the angle is reduced with an error that grows with it.
        UnaryOp::SinApprox | UnaryOp::CosApprox if as_f64(x).abs() <= std::f64::consts::PI => 2f64.powi(-20),
        UnaryOp::SinApprox | UnaryOp::CosApprox => 2.0,
        _ => 0.0,
    };
    distance(reference(op, as_f64(x)), got, slack)
}

/// How far `got` is from `exact` beyond `slack`, in units in the last place.
pub(crate) fn distance(exact: f64, got: Scalar, slack: f64) -> f64 {
    let (got, dtype) = (as_f64(got), got.dtype());
    let (digits, smallest_exponent, largest): (i32, i32, f64) = match dtype {
        Dtype::F16 => (11, -14, 65504.0),
        Dtype::Bf16 => (8, -126, 3.3895313892515355e38),
        Dtype::F32 => (24, -126, f64::from(f32::MAX)),
        _ => (53, -1022, f64::MAX),
    };
    if exact.is_nan() || got.is_nan() {
        return if exact.is_nan() == got.is_nan() { 0.0 } else { f64::NAN };
    }
    let exponent = if exact == 0.0 { smallest_exponent } else { (exact.abs().log2().floor() as i32).max(smallest_exponent) };
    let ulp = f64::from(exponent - digits + 1).exp2();
    if got == exact {
        return 0.0;
    }
    if got.is_infinite() || exact.is_infinite() {
        // Infinity stands where the largest finite number's successor would.
        let is_near = exact.signum() == got.signum() && exact.abs() >= largest - 2.0 * ulp && got.abs() >= largest - 2.0 * ulp;
        return if is_near { 0.0 } else { f64::INFINITY };
    }
    ((got - exact).abs() - slack).max(0.0) / ulp
}

/// The function in `f64`.
fn reference(op: UnaryOp, x: f64) -> f64 {
    match op {
        UnaryOp::Exp => x.exp(),
        UnaryOp::Exp2 | UnaryOp::ExpApprox2 | UnaryOp::ExpApproxFtz2 => x.exp2(),
        UnaryOp::Log => x.ln(),
        UnaryOp::Log2 | UnaryOp::LogApprox2 => x.log2(),
        UnaryOp::Rsqrt | UnaryOp::RsqrtApprox => 1.0 / x.sqrt(),
        UnaryOp::Sin | UnaryOp::SinApprox => x.sin(),
        UnaryOp::Cos | UnaryOp::CosApprox => x.cos(),
        UnaryOp::Tan => x.tan(),
        UnaryOp::Tanh | UnaryOp::TanhApprox => x.tanh(),
        UnaryOp::Sigmoid => {
            let e = (-x.abs()).exp();
            if x < 0.0 { e / (1.0 + e) } else { 1.0 / (1.0 + e) }
        }
        UnaryOp::Erf => libm::erf(x),
        UnaryOp::RecipApprox => 1.0 / x,
        UnaryOp::SqrtApprox => x.sqrt(),
        _ => f64::NAN,
    }
}
