//! `f32` and `f64` arithmetic: PTX ISA, 9.7.3. The distances of approximate functions are those that it documents.

use super::Rows;

const ROUNDINGS: [&str; 4] = ["rn", "rz", "rm", "rp"];

pub(crate) fn rows(rows: &mut Rows) {
    for rounding in ROUNDINGS {
        for modifiers in ["", ".ftz", ".sat", ".ftz.sat"] {
            arithmetic(rows, &format!("{rounding}{modifiers}"), "f32");
        }
        arithmetic(rows, rounding, "f64");
        for ty in ["ftz.f32", "f32", "f64"] {
            let own = ty.trim_start_matches("ftz.");
            rows.add(&format!("{own} {own}"), own, format!("div.{rounding}.{ty} d, a, b;"));
            rows.add(own, own, format!("sqrt.{rounding}.{ty} d, a;"));
            rows.add(own, own, format!("rcp.{rounding}.{ty} d, a;"));
        }
    }
    for modifiers in ["", ".ftz", ".NaN", ".ftz.NaN", ".xorsign.abs", ".ftz.xorsign.abs", ".NaN.xorsign.abs"] {
        for op in ["min", "max"] {
            rows.add("f32 f32", "f32", format!("{op}{modifiers}.f32 d, a, b;"));
        }
    }
    for op in ["min", "max", "copysign"] {
        rows.add("f64 f64", "f64", format!("{op}.f64 d, a, b;"));
    }
    rows.add("f32 f32", "f32", "copysign.f32 d, a, b;");
    for ty in ["f32", "ftz.f32", "f64"] {
        let own = ty.trim_start_matches("ftz.");
        for op in ["abs", "neg"] {
            rows.add(own, own, format!("{op}.{ty} d, a;"));
        }
    }
    rows.add("f32 f32 f32", "f32", "mad.rn.f32 d, a, b, c;");
    for op in ["add", "sub", "mul"] {
        // Without a rounding, instructions may be fused; alone it rounds to nearest.
        rows.add("f32 f32", "f32", format!("{op}.f32 d, a, b;"));
        rows.add("f64 f64", "f64", format!("{op}.f64 d, a, b;"));
    }
    nans(rows);
    tiny(rows);
    approximate(rows);
}

/// Of several NaNs, `f64` gives one; which, and with what sign, is the hardware's choice.
fn nans(rows: &mut Rows) {
    const EXPONENT: &str = "0x7ff0000000000001";
    for op in ["add.rn", "sub.rn", "mul.rn", "div.rn", "min", "max"] {
        let body = format!("or.b64 a, a, {EXPONENT}; or.b64 b, b, {EXPONENT}; {op}.f64 d, a, b;");
        rows.named(&format!("{op}.f64 of NaNs"), "b64 b64", "f64", body);
    }
    // The others are numbers: the assembler may exchange the factors, and with them their NaNs.
    const NUMBER: &str = "0xbfffffffffffffff";
    for (which, name) in [("abc", "three NaNs"), ("ab", "NaN, NaN, number"), ("ac", "NaN, number, NaN"), ("bc", "number, NaN, NaN")] {
        let make = |operand| match which.contains(operand) {
            true => format!("or.b64 {operand}, {operand}, {EXPONENT}; "),
            false => format!("and.b64 {operand}, {operand}, {NUMBER}; "),
        };
        let nans: String = "abc".chars().map(make).collect();
        rows.named(&format!("fma.rn.f64 of {name}"), "b64 b64 b64", "f64", format!("{nans}fma.rn.f64 d, a, b, c;"));
    }
}

fn arithmetic(rows: &mut Rows, modifiers: &str, ty: &str) {
    for op in ["add", "sub", "mul"] {
        rows.add(&format!("{ty} {ty}"), ty, format!("{op}.{modifiers}.{ty} d, a, b;"));
    }
    rows.add(&format!("{ty} {ty} {ty}"), ty, format!("fma.{modifiers}.{ty} d, a, b, c;"));
}

/// Results around the smallest normal number, where it matters whether a result is flushed before it is rounded or after.
fn tiny(rows: &mut Rows) {
    // Near 1, and near 2^-126, by some units in the last place.
    const FACTORS: &str = "and.b32 a, a, 0x80000003; and.b32 b, b, 0x80000003; add.u32 a, a, 0x3f7ffffd; add.u32 b, b, 0x007ffffe;";
    for modifiers in ["rn", "rn.ftz", "rz.ftz", "rm.ftz", "rp.ftz", "rn.ftz.sat"] {
        let name = |op: &str| format!("{op}.{modifiers}.f32 of tiny products");
        rows.named(&name("mul"), "b32 b32", "f32", format!("{FACTORS} mul.{modifiers}.f32 d, a, b;"));
        rows.named(&name("fma"), "b32 b32 b32", "f32", format!("{FACTORS} and.b32 c, c, 0x80000000; fma.{modifiers}.f32 d, a, b, c;"));
        if !modifiers.ends_with("sat") {
            rows.named(&name("div"), "b32 b32", "f32", format!("{FACTORS} div.{modifiers}.f32 d, b, a;"));
        }
    }
    for modifiers in ["rn", "rn.ftz", "rz.ftz", "rp.ftz"] {
        let body = format!("and.b64 a, a, 0x800000007fffffff; add.u64 a, a, 0x380fffffa0000000; cvt.{modifiers}.f32.f64 d, a;");
        rows.named(&format!("cvt.{modifiers}.f32.f64 of tiny values"), "b64", "f32", body);
    }
}

fn approximate(rows: &mut Rows) {
    let power = |exponent: f64| exponent.exp2();
    // Where the result is subnormal, its last place is what counts.
    let last = 2.0 * power(-149.0);
    for flush in ["", ".ftz"] {
        let ulps = |count: f64| count * power(-23.0);
        rows.add("f32", "f32", format!("rcp.approx{flush}.f32 d, a;")).close(ulps(1.0), last);
        rows.add("f32", "f32", format!("sqrt.approx{flush}.f32 d, a;")).close(power(-23.0) + ulps(1.0), last);
        rows.add("f32", "f32", format!("rsqrt.approx{flush}.f32 d, a;")).close(power(-22.9) + ulps(1.0), last);
        rows.add("f32", "f32", format!("ex2.approx{flush}.f32 d, a;")).close(ulps(2.0) + power(-22.5), last);
        rows.add("f32", "f32", format!("lg2.approx{flush}.f32 d, a;")).close(power(-22.0), power(-22.0));
        rows.add("f32~", "f32", format!("sin.approx{flush}.f32 d, a;")).close(0.0, power(-14.7));
        rows.add("f32~", "f32", format!("cos.approx{flush}.f32 d, a;")).close(0.0, power(-14.7));
        rows.add("f32~ f32~", "f32", format!("div.approx{flush}.f32 d, a, b;")).close(ulps(2.0), last);
        rows.add("f32~ f32~", "f32", format!("div.full{flush}.f32 d, a, b;")).close(ulps(2.0), last);
    }
    rows.add("f32", "f32", "tanh.approx.f32 d, a;").close(power(-10.9), last);
    rows.add("f64", "f64", "rcp.approx.ftz.f64 d, a;").close(power(-20.0), 0.0);
    rows.add("f64", "f64", "rsqrt.approx.ftz.f64 d, a;").close(power(-19.0), 0.0);
}
