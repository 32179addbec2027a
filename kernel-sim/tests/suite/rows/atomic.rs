//! Loads that extend, and atomics, each thread at its own address: PTX ISA, 9.7.9.8 and 9.7.13. What the memory held is the input `a`.

use super::Rows;

pub(crate) fn rows(rows: &mut Rows) {
    for (ty, register) in [("u8", "b32"), ("s8", "b32"), ("u16", "b32"), ("s16", "b32"), ("b16", "b32"), ("u8", "b16"), ("s8", "b16")] {
        rows.named(
            &format!("ld.global.{ty} to {register}"),
            "b32",
            register,
            format!("mad.wide.u32 %at, %thread, 4, %in; ld.global.{ty} d, [%at];"),
        );
    }
    for ty in ["u8", "s16", "u32", "s32"] {
        rows.named(&format!("ld.global.{ty} to b64"), "b32", "b64", format!("mad.wide.u32 %at, %thread, 4, %in; ld.global.{ty} d, [%at];"));
    }
    for space in ["global", "shared"] {
        for (op, ty) in [
            ("add", "u32"),
            ("add", "s32"),
            ("add", "u64"),
            ("add", "f32"),
            ("add", "f64"),
            ("add.noftz", "f16"),
            ("add.noftz", "f16x2"),
            ("add.noftz", "bf16"),
            ("add.noftz", "bf16x2"),
            ("min", "u32"),
            ("min", "s32"),
            ("min", "u64"),
            ("min", "s64"),
            ("max", "u32"),
            ("max", "s32"),
            ("max", "u64"),
            ("max", "s64"),
            ("inc", "u32"),
            ("dec", "u32"),
            ("and", "b32"),
            ("or", "b64"),
            ("xor", "b32"),
            ("exch", "b32"),
            ("exch", "b64"),
        ] {
            atomic(rows, space, op, ty, "b");
        }
        for ty in ["b16", "b32", "b64"] {
            atomic(rows, space, "cas", ty, "b, c");
        }
        reduction(rows, space, "add", "f32");
        reduction(rows, space, "add.noftz", "f16x2");
    }
}

/// Where a thread's own memory is: its input `a` itself, or shared memory that holds the same.
fn own(space: &str, ty: &str) -> (String, &'static str) {
    let bytes = kernel_sim::ptx::Type::parse(ty).expect("the table names types").bytes();
    if space == "global" {
        return (format!("mad.wide.u32 %at, %thread, {bytes}, %in;"), "%at");
    }
    let bits = bytes * 8;
    let prologue = ".shared .align 8 .b8 tile[256]; .reg .b32 own, lane; mov.u32 own, tile; mov.u32 lane, %tid.x;";
    (format!("{prologue} mad.lo.u32 own, lane, 8, own; st.shared.b{bits} [own], a;"), "own")
}

fn bits(ty: &str) -> u32 {
    kernel_sim::ptx::Type::parse(ty).expect("the table names types").bits()
}

fn atomic(rows: &mut Rows, space: &str, op: &str, ty: &str, operands: &str) {
    let (prepare, address) = own(space, ty);
    let name = format!("atom.{space}.{op}.{ty}");
    let inputs = [ty; 3][..operands.split(',').count() + 1].join(" ");
    let body = format!("{prepare} {name} d, [{address}], {operands}; ld.{space}.b{} d1, [{address}];", bits(ty));
    rows.named(&name, &inputs, &format!("{ty} {ty}"), body);
}

fn reduction(rows: &mut Rows, space: &str, op: &str, ty: &str) {
    let (prepare, address) = own(space, ty);
    let name = format!("red.{space}.{op}.{ty}");
    let body = format!("{prepare} {name} [{address}], b; ld.{space}.b{} d, [{address}];", bits(ty));
    rows.named(&name, &format!("{ty} {ty}"), ty, body);
}
