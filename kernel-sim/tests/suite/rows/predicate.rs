//! Comparisons and selections: PTX ISA, 9.7.6 and 9.7.7. One row has many comparisons, one bit of the answer each.

use super::Rows;

const ORDERED: [&str; 6] = ["eq", "ne", "lt", "le", "gt", "ge"];
const UNSIGNED: [&str; 10] = ["eq", "ne", "lt", "le", "gt", "ge", "lo", "ls", "hi", "hs"];
const FLOAT: [&str; 14] = ["eq", "ne", "lt", "le", "gt", "ge", "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan"];

/// Each type that is compared, and how.
const COMPARED: [(&str, &str, &[&str]); 16] = [
    ("b16", "b16", &["eq", "ne"]),
    ("b32", "b32", &["eq", "ne"]),
    ("b64", "b64", &["eq", "ne"]),
    ("u16", "u16", &UNSIGNED),
    ("u32", "u32", &UNSIGNED),
    ("u64", "u64", &UNSIGNED),
    ("s16", "s16", &ORDERED),
    ("s32", "s32", &ORDERED),
    ("s64", "s64", &ORDERED),
    ("f32", "f32", &FLOAT),
    ("f32", "ftz.f32", &FLOAT),
    ("f64", "f64", &FLOAT),
    ("f16", "f16", &FLOAT),
    ("f16", "ftz.f16", &FLOAT),
    ("bf16", "bf16", &FLOAT),
    ("b32", "u32", &UNSIGNED),
];

pub(crate) fn rows(rows: &mut Rows) {
    for (ty, suffix, comparisons) in COMPARED {
        let name = if ty == "b32" && suffix == "u32" { "setp.u32 of bits".to_owned() } else { format!("setp.{suffix}") };
        let lines = comparisons.iter().enumerate().map(|(bit, comparison)| {
            // Each comparison sets one bit of the answer.
            let (split, suffix) = suffix.rsplit_once('.').map_or(("", suffix), |(flush, ty)| (flush, ty));
            let flush = if split.is_empty() { String::new() } else { format!(".{split}") };
            format!("setp.{comparison}{flush}.{suffix} p, a, b; selp.b32 r, {}, 0, p; or.b32 d, d, r;", 1u32 << bit)
        });
        let body: Vec<String> = lines.collect();
        rows.named(&name, &format!("{ty} {ty}"), "b32", format!(".reg .pred p; .reg .b32 r; mov.b32 d, 0; {}", body.join(" ")));
    }
    for op in ["and", "or", "xor"] {
        for ty in ["s32", "f32", "f64"] {
            rows.add(&format!("{ty} {ty} pred"), "pred pred", format!("setp.lt.{op}.{ty} d|d1, a, b, c;"));
            rows.named(&format!("setp.geu.{op}.{ty} negated"), &format!("{ty} {ty} pred"), "pred pred", {
                let comparison = if ty == "s32" { "ge" } else { "geu" };
                format!("setp.{comparison}.{op}.{ty} d|d1, a, b, !c;")
            });
        }
    }
    for ty in ["f16x2", "bf16x2"] {
        for comparison in ["lt", "neu", "nan", "ge"] {
            rows.add(&format!("{ty} {ty}"), "pred pred", format!("setp.{comparison}.{ty} d|d1, a, b;"));
        }
    }
    for result in ["u32", "s32", "f32"] {
        for (ty, comparison) in [("u32", "lo"), ("s64", "le"), ("f32", "gtu"), ("f64", "ne"), ("b16", "eq"), ("f16", "lt")] {
            // Halves are compared to integers and halves only.
            if (result, ty) == ("f32", "f16") {
                continue;
            }
            rows.add(&format!("{ty} {ty}"), "b32", format!("set.{comparison}.{result}.{ty} d, a, b;"));
        }
        rows.add("f32 f32 pred", "b32", format!("set.lt.xor.ftz.{result}.f32 d, a, b, c;"));
    }
    for (result, ty) in [("f16x2", "f16x2"), ("bf16x2", "bf16x2")] {
        for comparison in ["lt", "equ", "num"] {
            rows.add(&format!("{ty} {ty}"), "b32", format!("set.{comparison}.{result}.{ty} d, a, b;"));
        }
    }
    for result in ["f16", "bf16"] {
        rows.add(&format!("{result} {result}"), "b16", format!("set.leu.{result}.{result} d, a, b;"));
    }
    for ty in ["b16", "s32", "f32", "b64", "f64"] {
        rows.add(&format!("{ty} {ty} pred"), ty, format!("selp.{ty} d, a, b, c;"));
        rows.add(&format!("{ty} {ty} s32"), ty, format!("slct.{ty}.s32 d, a, b, c;"));
        rows.add(&format!("{ty} {ty} f32"), ty, format!("slct.{ty}.f32 d, a, b, c;"));
        rows.add(&format!("{ty} {ty} f32"), ty, format!("slct.ftz.{ty}.f32 d, a, b, c;"));
    }
    for op in ["and", "or", "xor"] {
        rows.add("pred pred", "pred", format!("{op}.pred d, a, b;"));
    }
    rows.add("pred", "pred", "not.pred d, a;");
    for ty in ["f32", "f64"] {
        for kind in ["finite", "infinite", "number", "notanumber", "normal", "subnormal"] {
            rows.add(ty, "pred", format!("testp.{kind}.{ty} d, a;"));
        }
    }
}
