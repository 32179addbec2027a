//! `f16`, `bf16` and their pairs: PTX ISA, 9.7.4 and 9.7.3.

use super::Rows;

pub fn rows(rows: &mut Rows) {
    for ty in ["f16", "f16x2"] {
        for modifiers in ["", ".rn", ".ftz", ".sat", ".rn.ftz.sat"] {
            for op in ["add", "sub", "mul"] {
                two(rows, &format!("{op}{modifiers}"), ty);
            }
        }
        for modifiers in [".rn", ".rn.ftz", ".rn.sat", ".rn.ftz.sat", ".rn.relu", ".rn.ftz.relu", ".rn.oob", ".rn.oob.relu"] {
            three(rows, &format!("fma{modifiers}"), ty);
        }
        for modifiers in ["", ".ftz", ".NaN", ".ftz.NaN", ".xorsign.abs", ".ftz.NaN.xorsign.abs"] {
            two(rows, &format!("min{modifiers}"), ty);
            two(rows, &format!("max{modifiers}"), ty);
        }
        for op in ["neg", "neg.ftz", "abs", "abs.ftz"] {
            one(rows, op, ty);
        }
        rows.add(ty, ty, format!("tanh.approx.{ty} d, a;")).close(0.0, (-10.987f64).exp2());
        rows.add(ty, ty, format!("ex2.approx.{ty} d, a;")).close((-9.9f64).exp2(), (-24f64).exp2());
    }
    for ty in ["bf16", "bf16x2"] {
        for modifiers in ["", ".rn"] {
            for op in ["add", "sub", "mul"] {
                two(rows, &format!("{op}{modifiers}"), ty);
            }
        }
        for modifiers in [".rn", ".rn.relu", ".rn.oob", ".rn.oob.relu"] {
            three(rows, &format!("fma{modifiers}"), ty);
        }
        for modifiers in ["", ".NaN", ".xorsign.abs", ".NaN.xorsign.abs"] {
            two(rows, &format!("min{modifiers}"), ty);
            two(rows, &format!("max{modifiers}"), ty);
        }
        for op in ["neg", "abs"] {
            one(rows, op, ty);
        }
        rows.add(ty, ty, format!("tanh.approx.{ty} d, a;")).close((-7f64).exp2(), 0.0);
        rows.add(ty, ty, format!("ex2.approx.ftz.{ty} d, a;")).close((-7f64).exp2(), 0.0);
    }
}

fn one(rows: &mut Rows, op: &str, ty: &str) {
    rows.add(ty, ty, format!("{op}.{ty} d, a;"));
}

fn two(rows: &mut Rows, op: &str, ty: &str) {
    rows.add(&format!("{ty} {ty}"), ty, format!("{op}.{ty} d, a, b;"));
}

fn three(rows: &mut Rows, op: &str, ty: &str) {
    rows.add(&format!("{ty} {ty} {ty}"), ty, format!("{op}.{ty} d, a, b, c;"));
}
