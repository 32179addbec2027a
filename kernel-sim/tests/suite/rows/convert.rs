//! `cvt`: PTX ISA, 9.7.9.21. Each pair of types with each rounding and each saturation that it has.

use super::Rows;

const INTEGERS: [&str; 8] = ["u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64"];
const ROUNDINGS: [&str; 4] = ["rn", "rz", "rm", "rp"];

pub(crate) fn rows(rows: &mut Rows) {
    integers(rows);
    floats(rows);
    between(rows);
    packed(rows);
}

fn cvt(rows: &mut Rows, modifiers: &str, to: &str, from: &str) {
    rows.add(from, to, format!("cvt{modifiers}.{to}.{from} d, a;"));
}

fn integers(rows: &mut Rows) {
    for to in INTEGERS {
        for from in INTEGERS {
            cvt(rows, "", to, from);
            if !fits(from, to) {
                cvt(rows, ".sat", to, from);
            }
        }
    }
}

/// Has an integer type every value of another? Then there is nothing to saturate, and `.sat` is refused.
fn fits(from: &str, to: &str) -> bool {
    let bits = |ty: &str| ty[1..].parse::<u32>().expect("an integer type ends with its bits");
    match (from.starts_with('s'), to.starts_with('s')) {
        (true, false) => false,
        (false, true) => bits(from) < bits(to),
        _ => bits(from) <= bits(to),
    }
}

/// `bf16` has no conversions from or to eight bits.
fn is_missing(integer: &str, float: &str) -> bool {
    float == "bf16" && integer.ends_with('8')
}

/// A float as an integer, and an integer as a float.
fn between(rows: &mut Rows) {
    for from in ["f16", "bf16", "f32", "f64"] {
        for to in INTEGERS.into_iter().filter(|to| !is_missing(to, from)) {
            for rounding in ROUNDINGS {
                cvt(rows, &format!(".{rounding}i"), to, from);
            }
            if from == "f32" {
                cvt(rows, ".rni.ftz", to, from);
                cvt(rows, ".rpi.ftz.sat", to, from);
            }
            if from != "bf16" {
                cvt(rows, ".rzi.sat", to, from);
            }
        }
    }
    for to in ["f16", "bf16", "f32", "f64"] {
        for from in INTEGERS.into_iter().filter(|from| !is_missing(from, to)) {
            for rounding in ROUNDINGS {
                cvt(rows, &format!(".{rounding}"), to, from);
            }
            if to != "bf16" {
                cvt(rows, ".rn.sat", to, from);
            }
        }
    }
}

fn floats(rows: &mut Rows) {
    // To fewer bits.
    for (to, from) in [("f32", "f64"), ("f16", "f64"), ("bf16", "f64"), ("f16", "f32"), ("bf16", "f32"), ("f16", "bf16"), ("bf16", "f16")] {
        for rounding in ROUNDINGS {
            cvt(rows, &format!(".{rounding}"), to, from);
        }
    }
    for modifiers in [".rn.ftz", ".rz.ftz", ".rp.ftz", ".rn.sat", ".rn.ftz.sat", ".rm.sat"] {
        cvt(rows, modifiers, "f32", "f64");
    }
    for modifiers in [".rn.ftz", ".rz.ftz", ".rn.sat", ".rn.ftz.sat", ".rn.relu", ".rz.relu", ".rn.satfinite", ".rn.relu.satfinite"] {
        cvt(rows, modifiers, "f16", "f32");
    }
    for modifiers in [".rn.relu", ".rz.relu", ".rn.satfinite", ".rz.relu.satfinite", ".rn.ftz"] {
        cvt(rows, modifiers, "bf16", "f32");
    }
    // To more.
    for (to, from) in [("f64", "f32"), ("f64", "f16"), ("f64", "bf16"), ("f32", "f16"), ("f32", "bf16")] {
        cvt(rows, "", to, from);
        if from != "bf16" {
            cvt(rows, ".sat", to, from);
        }
    }
    for (to, from) in [("f64", "f32"), ("f32", "f16"), ("f32", "bf16")] {
        cvt(rows, ".ftz", to, from);
        if from != "bf16" {
            cvt(rows, ".ftz.sat", to, from);
        }
    }
    // To an integral value of the same type.
    for ty in ["f16", "bf16", "f32", "f64"] {
        for rounding in ROUNDINGS {
            cvt(rows, &format!(".{rounding}i"), ty, ty);
        }
        let modifiers: &[&str] = match ty {
            "f32" => &[".ftz", ".sat", ".ftz.sat", ".rni.ftz", ".rzi.sat", ".rmi.ftz.sat"],
            "bf16" => &[],
            _ => &[".sat", ".rzi.sat"],
        };
        for modifiers in modifiers {
            cvt(rows, modifiers, ty, ty);
        }
    }
    for rounding in [".rna", ".rn", ".rz", ".rna.satfinite", ".rn.relu", ".rz.relu"] {
        rows.add("f32", "b32", format!("cvt{rounding}.tf32.f32 d, a;"));
    }
}

fn packed(rows: &mut Rows) {
    for to in ["f16x2", "bf16x2"] {
        for modifiers in [".rn", ".rz", ".rn.relu", ".rz.relu", ".rn.satfinite", ".rz.relu.satfinite"] {
            rows.add("f32 f32", "b32", format!("cvt{modifiers}.{to}.f32 d, a, b;"));
        }
    }
    for tiny in ["e4m3x2", "e5m2x2"] {
        for relu in ["", ".relu"] {
            rows.add("f32 f32", "b16", format!("cvt.rn.satfinite{relu}.{tiny}.f32 d, a, b;"));
            rows.add("f16x2", "b16", format!("cvt.rn.satfinite{relu}.{tiny}.f16x2 d, a;"));
            rows.add("b16", "b32", format!("cvt.rn{relu}.f16x2.{tiny} d, a;")).warps(16);
        }
    }
    for to in ["u8", "s8"] {
        rows.add("s32 s32 b32", "b32", format!("cvt.pack.sat.{to}.s32.b32 d, a, b, c;"));
    }
    for to in ["u16", "s16"] {
        rows.add("s32 s32", "b32", format!("cvt.pack.sat.{to}.s32 d, a, b;"));
    }
}
