//! Matrix instructions: PTX ISA, 9.7.15. Floats come twice: of the size of 1, where sums round, and with all special values.

use super::{Row, Rows};

pub(crate) fn rows(rows: &mut Rows) {
    moves(rows);
    for (shape, a, b) in [("m16n8k8", 2, 1), ("m16n8k16", 4, 2)] {
        floats(rows, shape, ["f16", "f16x2", "f16x2"], "f32", [a, b, 4]);
        floats(rows, shape, ["f16", "f16x2", "f16x2"], "f16", [a, b, 2]);
        floats(rows, shape, ["bf16", "bf16x2", "bf16x2"], "f32", [a, b, 4]);
    }
    for (shape, a, b) in [("m16n8k4", 2, 1), ("m16n8k8", 4, 2)] {
        floats(rows, shape, ["tf32", "f32", "f32"], "f32", [a, b, 4]);
    }
    for (shape, a, b) in [("m16n8k16", 2, 1), ("m16n8k32", 4, 2)] {
        for accumulator in ["f32", "f16"] {
            for left in ["e4m3", "e5m2"] {
                for right in ["e4m3", "e5m2"] {
                    eights(rows, shape, left, right, accumulator, [a, b]);
                }
            }
        }
    }
    for (shape, a, b, c) in [("m8n8k4", 1, 1, 2), ("m16n8k4", 2, 1, 4), ("m16n8k8", 4, 2, 4), ("m16n8k16", 8, 4, 4)] {
        for domain in ["~", ""] {
            let name = format!("mma.sync.aligned.{shape}.row.col.f64.f64.f64.f64{}", suffix(domain));
            mma(rows, &name, &format!("f64{domain}"), &format!("f64{domain}"), &format!("f64{domain}"), "f64", [a, b, c]);
        }
    }
    for (shape, a, b, c) in [("m8n8k16", 1, 1, 2), ("m16n8k16", 2, 1, 4), ("m16n8k32", 4, 2, 4)] {
        integers(rows, shape, ["u8", "s8"], [a, b, c]);
    }
    for (shape, a, b, c) in [("m8n8k32", 1, 1, 2), ("m16n8k32", 2, 1, 4), ("m16n8k64", 4, 2, 4)] {
        integers(rows, shape, ["u4", "s4"], [a, b, c]);
    }
    for (shape, a, b, c) in [("m8n8k128", 1, 1, 2), ("m16n8k128", 2, 1, 4), ("m16n8k256", 4, 2, 4)] {
        for op in ["xor", "and"] {
            mma(rows, &format!("mma.sync.aligned.{shape}.row.col.s32.b1.b1.s32.{op}.popc"), "b32", "b32", "s32", "b32", [a, b, c]);
        }
    }
}

fn suffix(domain: &str) -> &'static str {
    if domain == "~" { " of moderate size" } else { "" }
}

/// One `mma`; `counts` are the registers of the left and right matrix and the sum.
fn mma<'a>(rows: &'a mut Rows, name: &str, left: &str, right: &str, sum: &str, result: &str, counts: [usize; 3]) -> &'a mut Row {
    let mut names = ('a'..='z').filter(|&name| name != 'd').map(String::from);
    let mut take = |count: usize| names.by_ref().take(count).collect::<Vec<_>>().join(", ");
    let [a, b, c] = counts.map(&mut take);
    let d: Vec<String> = (0..counts[2]).map(|number| if number == 0 { "d".to_owned() } else { format!("d{number}") }).collect();
    let inputs: Vec<&str> =
        [(left, counts[0]), (right, counts[1]), (sum, counts[2])].iter().flat_map(|&(ty, count)| vec![ty; count]).collect();
    let outputs = vec![result; counts[2]].join(" ");
    let instruction = name.split(' ').next().unwrap_or_default();
    rows.named(name, &inputs.join(" "), &outputs, format!("{instruction} {{{}}}, {{{a}}}, {{{b}}}, {{{c}}};", d.join(", ")))
}

fn floats(rows: &mut Rows, shape: &str, [ty, left, right]: [&str; 3], sum: &str, counts: [usize; 3]) {
    for domain in ["~", ""] {
        let name = format!("mma.sync.aligned.{shape}.row.col.{sum}.{ty}.{ty}.{sum}{}", suffix(domain));
        let register = if sum == "f16" { "f16x2" } else { "f32" };
        mma(rows, &name, &format!("{left}{domain}"), &format!("{right}{domain}"), &format!("{register}{domain}"), register, counts)
            .warps(12);
    }
}

/// Eight-bit floats: four in a register.
fn eights(rows: &mut Rows, shape: &str, left: &str, right: &str, sum: &str, [a, b]: [usize; 2]) {
    for domain in ["~", ""] {
        let name = format!("mma.sync.aligned.{shape}.row.col.{sum}.{left}.{right}.{sum}{}", suffix(domain));
        let (register, count) = if sum == "f16" { ("f16x2", 2) } else { ("f32", 4) };
        mma(rows, &name, &format!("{left}{domain}"), &format!("{right}{domain}"), &format!("{register}{domain}"), register, [a, b, count])
            .warps(12);
    }
}

fn integers(rows: &mut Rows, shape: &str, types: [&str; 2], counts: [usize; 3]) {
    for left in types {
        for right in types {
            for saturate in ["", ".satfinite"] {
                let name = format!("mma.sync.aligned.{shape}.row.col{saturate}.s32.{left}.{right}.s32");
                mma(rows, &name, "b32", "b32", "s32", "b32", counts);
            }
        }
    }
}

/// Matrices between shared memory and registers.
fn moves(rows: &mut Rows) {
    const TILE: &str =
        ".shared .align 16 .b8 tile[512]; .reg .b32 at, own; mov.u32 own, tile; mov.u32 at, %laneid; mad.lo.u32 own, at, 16, own;";
    for trans in ["", ".trans"] {
        for (count, outputs, registers) in [(1, "b32", "d"), (2, "b32 b32", "d, d1"), (4, "b32 b32 b32 b32", "d, d1, d2, d3")] {
            rows.named(
                &format!("ldmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16"),
                "u32<32 b32 b32 b32 b32",
                outputs,
                format!(
                    "{TILE} st.shared.v4.b32 [own], {{b, c, e, f}}; bar.warp.sync 0xffffffff; mov.u32 at, tile; mad.lo.u32 at, a, 16, at;
                     ldmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16 {{{registers}}}, [at];"
                ),
            );
            let sources = ["a", "b", "c", "e"][..count].join(", ");
            rows.named(
                &format!("stmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16"),
                "b32 b32 b32 b32",
                "b32 b32 b32 b32",
                format!(
                    "{TILE} mov.b32 d, 0; st.shared.v4.b32 [own], {{d, d, d, d}}; bar.warp.sync 0xffffffff;
                     mul.lo.u32 at, at, 5; and.b32 at, at, 31; mul.lo.u32 at, at, 16; mov.u32 d, tile; add.u32 at, at, d;
                     stmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16 [at], {{{sources}}};
                     bar.warp.sync 0xffffffff; ld.shared.v4.b32 {{d, d1, d2, d3}}, [own];"
                ),
            );
        }
    }
    rows.add("b32", "b32", "movmatrix.sync.aligned.m8n8.trans.b16 d, a;");
}
