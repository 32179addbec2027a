//! Warp-wide instructions: PTX ISA, 9.7.9 (shuffles) and 9.7.13 (votes, matches, reductions).

use super::Rows;

/// All lanes.
const ALL: &str = "0xffffffff";

pub(crate) fn rows(rows: &mut Rows) {
    shuffles(rows);
    for kind in ["all", "any", "uni"] {
        rows.add("pred", "pred", format!("vote.sync.{kind}.pred d, a, {ALL};"));
        rows.named(&format!("vote.sync.{kind}.pred of all"), "u32<40", "pred pred", {
            format!(".reg .pred p; setp.lt.u32 p, a, 64; vote.sync.{kind}.pred d, p, {ALL}; vote.sync.{kind}.pred d1, !p, {ALL};")
        });
    }
    rows.add("pred", "b32", format!("vote.sync.ballot.b32 d, a, {ALL};"));
    rows.named("vote.sync.ballot.b32 negated", "pred", "b32", format!("vote.sync.ballot.b32 d, !a, {ALL};"));
    for ty in ["b32", "b64"] {
        rows.add(&format!("{ty}<6"), "b32", format!("match.any.sync.{ty} d, a, {ALL};"));
        rows.add(&format!("{ty}<2"), "b32 pred", format!("match.all.sync.{ty} d|d1, a, {ALL};"));
        rows.named(
            &format!("match.all.sync.{ty} of equals"),
            &format!("{ty}<1"),
            "b32 pred",
            format!("match.all.sync.{ty} d|d1, a, {ALL};"),
        );
    }
    for (ops, ty) in [(["add", "min", "max"], "u32"), (["add", "min", "max"], "s32"), (["and", "or", "xor"], "b32")] {
        for op in ops {
            rows.add(ty, ty, format!("redux.sync.{op}.{ty} d, a, {ALL};"));
        }
    }
    rows.add("b32", "b32 pred", format!("elect.sync d|d1, {ALL};"));
    members(rows);
}

/// A part of a warp: the lanes that a mask names.
fn members(rows: &mut Rows) {
    const MASK: &str = "0x0ff0a5c3";
    let mut part = |name: &str, inputs: &str, outputs: &str, clear: &str, instruction: &str| {
        let lanes = format!(".reg .b32 lane; .reg .pred p; mov.u32 lane, %laneid; shr.u32 lane, {MASK}, lane; and.b32 lane, lane, 1;");
        rows.named(
            &format!("{name} in a part"),
            inputs,
            outputs,
            format!("{lanes} setp.eq.u32 p, lane, 0; {clear} @p bra DONE; {instruction} DONE:"),
        );
    };
    for op in ["add.s32", "max.u32", "xor.b32"] {
        part(&format!("redux.sync.{op}"), "b32", "b32", "mov.b32 d, 0;", &format!("redux.sync.{op} d, a, {MASK};"));
    }
    part("match.any.sync.b32", "b32<6", "b32", "mov.b32 d, 0;", &format!("match.any.sync.b32 d, a, {MASK};"));
    part("vote.sync.ballot.b32", "pred", "b32", "mov.b32 d, 0;", &format!("vote.sync.ballot.b32 d, a, {MASK};"));
    part("shfl.sync.idx.b32", "b32", "b32", "mov.b32 d, 0;", &format!("shfl.sync.idx.b32 d, a, 6, 0x1f, {MASK};"));
    part("elect.sync", "b32", "b32 pred", "mov.b32 d, 0; setp.ne.u32 d1, 0, 0;", &format!("elect.sync d|d1, {MASK};"));
}

fn shuffles(rows: &mut Rows) {
    for mode in ["up", "down", "bfly", "idx"] {
        for width in [1u32, 2, 4, 8, 16, 32] {
            let clamp = if mode == "up" { 0 } else { 0x1f };
            let c = (32 - width) << 8 | clamp;
            let name = format!("shfl.sync.{mode}.b32 of {width}");
            rows.named(&name, "b32 u32<40", "b32 pred", format!("shfl.sync.{mode}.b32 d|d1, a, b, {c}, {ALL};")).warps(2);
        }
        // Any clamp and any segments.
        let name = format!("shfl.sync.{mode}.b32 of anything");
        rows.named(&name, "b32 u32 u32", "b32 pred", format!("shfl.sync.{mode}.b32 d|d1, a, b, c, {ALL};"));
    }
}
