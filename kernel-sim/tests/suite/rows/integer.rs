//! Integer arithmetic and logic: PTX ISA, 9.7.1, 9.7.2 and 9.7.8.

use super::Rows;

const ALL: [&str; 6] = ["u16", "s16", "u32", "s32", "u64", "s64"];
const WIDE: [(&str, &str); 4] = [("u16", "u32"), ("s16", "s32"), ("u32", "u64"), ("s32", "s64")];

pub(crate) fn rows(rows: &mut Rows) {
    arithmetic(rows);
    carries(rows);
    bits(rows);
    shifts(rows);
    products(rows);
}

fn arithmetic(rows: &mut Rows) {
    for ty in ALL {
        for op in ["add", "sub", "mul.lo", "mul.hi", "min", "max"] {
            rows.add(&format!("{ty} {ty}"), ty, format!("{op}.{ty} d, a, b;"));
        }
        for op in ["mad.lo", "mad.hi", "sad"] {
            rows.add(&format!("{ty} {ty} {ty}"), ty, format!("{op}.{ty} d, a, b, c;"));
        }
        for op in ["div", "rem"] {
            rows.add(&format!("{ty} {ty}!"), ty, format!("{op}.{ty} d, a, b;"));
        }
    }
    for ty in ["s16", "s32", "s64"] {
        for op in ["abs", "neg"] {
            rows.add(ty, ty, format!("{op}.{ty} d, a;"));
        }
    }
    for op in ["add.sat.s32", "sub.sat.s32", "min.relu.s32", "max.relu.s32"] {
        rows.add("s32 s32", "s32", format!("{op} d, a, b;"));
    }
    for ty in ["u16x2", "s16x2"] {
        for op in ["add", "min", "max"] {
            rows.add("b32 b32", "b32", format!("{op}.{ty} d, a, b;"));
        }
    }
    for op in ["min.relu.s16x2", "max.relu.s16x2"] {
        rows.add("b32 b32", "b32", format!("{op} d, a, b;"));
    }
    for (narrow, wide) in WIDE {
        rows.add(&format!("{narrow} {narrow}"), wide, format!("mul.wide.{narrow} d, a, b;"));
        rows.add(&format!("{narrow} {narrow} {wide}"), wide, format!("mad.wide.{narrow} d, a, b, c;"));
    }
    rows.add("s32 s32 s32", "s32", "mad.hi.sat.s32 d, a, b, c;");
    for ty in ["u32", "s32"] {
        for half in ["lo", "hi"] {
            rows.add(&format!("{ty} {ty}"), ty, format!("mul24.{half}.{ty} d, a, b;"));
            rows.add(&format!("{ty} {ty} {ty}"), ty, format!("mad24.{half}.{ty} d, a, b, c;"));
        }
    }
    rows.add("s32 s32 s32", "s32", "mad24.hi.sat.s32 d, a, b, c;");
}

fn carries(rows: &mut Rows) {
    for ty in ["u32", "s32", "u64", "s64"] {
        let four = [ty; 4].join(" ");
        let three = [ty; 3].join(" ");
        let last = format!("addc.{ty} d2, 0, 0;");
        let lent = format!("subc.{ty} d2, 0, 0;");
        rows.add(&four, &three, format!("add.cc.{ty} d, a, c; addc.cc.{ty} d1, b, e; {last}"));
        rows.add(&four, &three, format!("sub.cc.{ty} d, a, c; subc.cc.{ty} d1, b, e; {lent}"));
        let five = [ty; 5].join(" ");
        rows.add(&five, &three, format!("mad.lo.cc.{ty} d, a, b, c; madc.hi.cc.{ty} d1, a, b, e; madc.lo.{ty} d2, a, f, 0;"));
        rows.add(&five, &three, format!("mad.hi.cc.{ty} d, a, b, c; madc.lo.cc.{ty} d1, a, f, e; madc.hi.{ty} d2, f, b, c;"));
        rows.named(&format!("add.cc and subc.{ty}"), &four, &three, format!("add.cc.{ty} d, a, c; subc.cc.{ty} d1, b, e; {last}"));
    }
}

fn bits(rows: &mut Rows) {
    for ty in ["b16", "b32", "b64"] {
        for op in ["and", "or", "xor"] {
            rows.add(&format!("{ty} {ty}"), ty, format!("{op}.{ty} d, a, b;"));
        }
        for op in ["not", "cnot"] {
            rows.add(ty, ty, format!("{op}.{ty} d, a;"));
        }
    }
    for ty in ["b32", "b64"] {
        for op in ["popc", "clz"] {
            rows.add(ty, "u32", format!("{op}.{ty} d, a;"));
        }
        rows.add(ty, ty, format!("brev.{ty} d, a;"));
        rows.add(&format!("{ty} {ty} u32<80 u32<80"), ty, format!("bfi.{ty} d, a, b, c, e;"));
    }
    for ty in ["u32", "s32", "u64", "s64"] {
        rows.add(ty, "u32", format!("bfind.{ty} d, a;"));
        rows.add(ty, "u32", format!("bfind.shiftamt.{ty} d, a;"));
        rows.add(&format!("{ty} u32<80 u32<80"), ty, format!("bfe.{ty} d, a, b, c;"));
        // Positions and lengths are restricted to eight bits.
        rows.named(&format!("bfe.{ty} of any place"), &format!("{ty} u32<256 u32<256"), ty, format!("bfe.{ty} d, a, b, c;"));
    }
    rows.add("b32 u32<32 s32<33", "b32", "sub.s32 c, c, 16; fns.b32 d, a, b, c;").name = "fns.b32".to_owned();
    for mode in ["", ".f4e", ".b4e", ".rc8", ".ecl", ".ecr", ".rc16"] {
        rows.add("b32 b32 b32", "b32", format!("prmt.b32{mode} d, a, b, c;"));
    }
    for table in [0x80, 0xfe, 0x96, 0xca, 0xe8, 0x1b, 0x00, 0xff] {
        let name = format!("lop3.b32 {table:#x}");
        rows.named(&name, "b32 b32 b32", "b32", format!("lop3.b32 d, a, b, c, {table};"));
    }
    for op in ["and", "or"] {
        rows.add("b32 b32 b32 pred", "b32 pred", format!("lop3.{op}.b32 d|d1, a, b, c, 0x96, e;"));
        rows.named(&format!("lop3.{op}.b32 of little"), "b32<2 b32<2 b32<2 pred", "pred", format!("lop3.{op}.b32 _|d, a, b, c, 0x96, e;"));
    }
    rows.add("b32 b32", "b64", "mov.b64 d, {a, b};").name = "mov.b64 packs".to_owned();
    rows.add("b64", "b32 b32", "mov.b64 {d, d1}, a;").name = "mov.b64 unpacks".to_owned();
    rows.add("b32", "b16 b16", "mov.b32 {d, d1}, a;").name = "mov.b32 unpacks".to_owned();
    rows.add("b16 b16 b16 b16", "b64", "mov.b64 d, {a, b, c, e};").name = "mov.b64 packs four".to_owned();
}

fn shifts(rows: &mut Rows) {
    for (ty, bound) in [("b16", 20), ("b32", 40), ("b64", 72)] {
        rows.add(&format!("{ty} u32<{bound}"), ty, format!("shl.{ty} d, a, b;"));
        rows.named(&format!("shl.{ty} by anything"), &format!("{ty} u32"), ty, format!("shl.{ty} d, a, b;"));
        for sign in ["b", "u", "s"] {
            let ty = format!("{sign}{}", &ty[1..]);
            rows.add(&format!("{ty} u32<{bound}"), &ty, format!("shr.{ty} d, a, b;"));
            rows.named(&format!("shr.{ty} by anything"), &format!("{ty} u32"), &ty, format!("shr.{ty} d, a, b;"));
        }
    }
    for mode in ["l.clamp", "l.wrap", "r.clamp", "r.wrap"] {
        rows.add("b32 b32 u32<72", "b32", format!("shf.{mode}.b32 d, a, b, c;"));
    }
    for mode in ["clamp", "wrap"] {
        for ty in ["u32", "s32"] {
            rows.add(&format!("{ty} u32<40"), ty, format!("szext.{mode}.{ty} d, a, b;"));
        }
        rows.add("u32<40 u32<40", "b32", format!("bmsk.{mode}.b32 d, a, b;"));
        rows.named(&format!("bmsk.{mode}.b32 of anything"), "u32 u32", "b32", format!("bmsk.{mode}.b32 d, a, b;"));
    }
}

fn products(rows: &mut Rows) {
    for a in ["u32", "s32"] {
        for b in ["u32", "s32"] {
            let inputs = format!("b32 b32 {}", if a == "u32" && b == "u32" { "u32" } else { "s32" });
            rows.add(&inputs, "b32", format!("dp4a.{a}.{b} d, a, b, c;"));
            for half in ["lo", "hi"] {
                rows.add(&inputs, "b32", format!("dp2a.{half}.{a}.{b} d, a, b, c;"));
            }
        }
    }
}
