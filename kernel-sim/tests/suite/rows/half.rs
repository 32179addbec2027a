//! `f16`, `bf16` and their pairs: PTX ISA, 9.7.4 and 9.7.3.

use super::Rows;

pub(crate) fn rows(rows: &mut Rows) {
    out_of_bounds(rows);
    tiny(rows);
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

/// One NaN stands for what lies outside of a tensor: each thread tries another, of both signs.
fn out_of_bounds(rows: &mut Rows) {
    for (ty, fraction, infinity, one, warps) in [("f16", 10, 0x7c00, 0x3c00, 64), ("bf16", 7, 0x7f80, 0x3f80, 8)] {
        let body = format!(
            ".reg .b32 bits, sign; .reg .b16 a, b, high; shr.u32 sign, %thread, {fraction}; shl.b32 sign, sign, 15;
             and.b32 bits, %thread, {}; or.b32 bits, bits, sign; or.b32 bits, bits, {infinity}; mov.b32 {{a, high}}, bits; mov.b16 b, {one};
             fma.rn.oob.{ty} d, a, b, b; fma.rn.oob.{ty} d1, b, a, b; fma.rn.oob.relu.{ty} d2, b, b, a;",
            (1 << fraction) - 1
        );
        rows.named(&format!("fma.rn.oob.{ty} of every NaN"), "", "b16 b16 b16", body).warps(warps);
    }
}

/// Products around the smallest normal number: near 1, and near 2^-14, by some units in the last place.
fn tiny(rows: &mut Rows) {
    for modifiers in ["rn", "rn.ftz", "rn.ftz.sat"] {
        for op in ["mul", "fma"] {
            let (addend, zero) = if op == "fma" { (", c", "and.b32 c, c, 0x80008000; ") } else { ("", "") };
            let body = format!(
                "and.b32 a, a, 0x80038003; and.b32 b, b, 0x80038003; add.u32 a, a, 0x3bfd3bfd; add.u32 b, b, 0x03fe03fe;
                 {zero}{op}.{modifiers}.f16x2 d, a, b{addend};"
            );
            let inputs = if op == "fma" { "b32 b32 b32" } else { "b32 b32" };
            rows.named(&format!("{op}.{modifiers}.f16x2 of tiny products"), inputs, "f16x2", body);
        }
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
