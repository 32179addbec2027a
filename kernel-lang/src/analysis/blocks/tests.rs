//! Blocks of loads of 64 x 16 elements, and why others have none.

use super::*;
use crate::ir::parse;

/// A kernel with rows `64 * id + 0 .. 64`, columns `0 .. 16`, the index of a row-major matrix, and these lines.
fn kernel(lines: &str) -> Function {
    let text = format!(
        "kernel @k(%x: ptr<bf16>, %y: ptr_mut<bf16>, %rows: i64, %inner: i64, %at: i64, %on: bool) {{
            %id = program_id : i64
            %nth = program_id {{axis = 2}} : i64
            %height = const {{value = 64}} : i64
            %first = mul %id, %height : i64
            %r = arange {{start = 0, end = 64}} : tile<i64, [64]>
            %r0 = broadcast %first : tile<i64, [64]>
            %r1 = add %r0, %r : tile<i64, [64]>
            %r2 = expand_dims %r1 {{axis = 1}} : tile<i64, [64, 1]>
            %row = broadcast %r2 : tile<i64, [64, 16]>
            %c = arange {{start = 0, end = 16}} : tile<i64, [16]>
            %c2 = expand_dims %c {{axis = 0}} : tile<i64, [1, 16]>
            %column = broadcast %c2 : tile<i64, [64, 16]>
            %wide = broadcast %inner : tile<i64, [64, 16]>
            %high = broadcast %rows : tile<i64, [64, 16]>
            %of_row = mul %row, %wide : tile<i64, [64, 16]>
            %index = add %of_row, %column : tile<i64, [64, 16]>
            %below = lt %row, %high : tile<bool, [64, 16]>
            %left = lt %column, %wide : tile<bool, [64, 16]>
            %both = and %below, %left : tile<bool, [64, 16]>
            {lines}
            return
        }}"
    );
    parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// The block of the last access, in text.
fn block(lines: &str) -> Result<String, Obstacle> {
    let func = kernel(lines);
    let is_access = |inst: &Inst| matches!(func.inst(*inst).op, Op::Load { .. } | Op::Store { .. });
    let access = func.all_insts().into_iter().rfind(is_access).expect("there is an access");
    let block = Blocks::of(&func).block(access)?;
    let axis = |axis: &Axis| {
        let end = match &axis.extent {
            Extent::Limit(limit) => format!("< {}", printed(&func, limit)),
            Extent::LastBlock(elements) => format!("in blocks of {elements}"),
        };
        format!("{} {end} by {}", printed(&func, &axis.corner), printed(&func, &axis.stride))
    };
    let bounded: Vec<String> = block.bounded.iter().map(|scalar| name(&func, *scalar)).collect();
    let axes: Vec<String> = block.axes.iter().map(axis).collect();
    let offset = if block.offset.is(0) { String::new() } else { format!("from {}; ", printed(&func, &block.offset)) };
    Ok(format!("{offset}{}; bounded: {}", axes.join("; "), bounded.join(" ")))
}

fn name(func: &Function, scalar: Value) -> String {
    match (func.param_index(scalar), func.def_op(scalar)) {
        (Some(param), _) => func.params[param].name.to_string(),
        (_, Some(Op::ProgramId { axis })) => format!("id{axis}"),
        (_, Some(op)) => op.name().to_string(),
        _ => "i".to_string(),
    }
}

fn printed(func: &Function, number: &Polynomial) -> String {
    let term = |(factors, coefficient): &(Product, i64)| {
        let mut factors: Vec<String> = factors.iter().map(|factor| name(func, *factor)).collect();
        factors.sort_unstable();
        if *coefficient != 1 {
            factors.insert(0, coefficient.to_string());
        }
        factors.join("*")
    };
    let mut terms: Vec<String> = number.terms.iter().map(term).collect();
    terms.sort_unstable();
    if number.constant != 0 || terms.is_empty() {
        terms.push(number.constant.to_string());
    }
    terms.join(" + ")
}

fn found(text: &str) -> Result<String, Obstacle> {
    Ok(text.to_string())
}

#[test]
fn the_mask_states_the_ends() {
    assert_eq!(
        block("%v = load %x, %index {mask = %both} : tile<bf16, [64, 16]>"),
        found("64*id0 < rows by inner; 0 < inner by 1; bounded: ")
    );
    let last = "%most = le %row, %high : tile<bool, [64, 16]>
        %v = load %x, %index {mask = %most} : tile<bf16, [64, 16]>";
    assert_eq!(block(last), found("64*id0 < rows + 1 by inner; 0 in blocks of 16 by 1; bounded: "));
    let swapped = "%above = gt %high, %row : tile<bool, [64, 16]>
        %v = load %x, %index {mask = %above} : tile<bf16, [64, 16]>";
    assert_eq!(block(swapped), found("64*id0 < rows by inner; 0 in blocks of 16 by 1; bounded: "));
}

#[test]
fn without_a_mask_a_tensor_ends_behind_the_last_block() {
    assert_eq!(
        block("%v = load %x, %index : tile<bf16, [64, 16]>"),
        found("64*id0 in blocks of 64 by inner; 0 in blocks of 16 by 1; bounded: ")
    );
    // The end of the last block of a row that a quotient numbers is not known.
    let quotient = "%part = div %id, %at : i64
        %p0 = broadcast %part : tile<i64, [64, 16]>
        %other = add %row, %p0 : tile<i64, [64, 16]>
        %lines = mul %other, %wide : tile<i64, [64, 16]>
        %to = add %lines, %column : tile<i64, [64, 16]>
        %v = load %x, %to";
    assert_eq!(block(&format!("{quotient} : tile<bf16, [64, 16]>")), Err(Obstacle::Launch));
    let masked = format!(
        "{} %near = lt %other, %high : tile<bool, [64, 16]>
        %v = load %x, %to {{mask = %near}} : tile<bf16, [64, 16]>",
        quotient.rsplit_once("%v").unwrap().0
    );
    assert_eq!(block(&masked), found("64*id0 + div < rows by inner; 0 in blocks of 16 by 1; bounded: at"));
}

#[test]
fn the_index_of_a_loop_grows() {
    let lines = "%zero = const {value = 0} : i64
        %step = const {value = 16} : i64
        for %zero, %inner, %step (%i: i64) {
            %i0 = broadcast %i : tile<i64, [64, 16]>
            %k = add %column, %i0 : tile<i64, [64, 16]>
            %to = add %of_row, %k : tile<i64, [64, 16]>
            %v = load %x, %to : tile<bf16, [64, 16]>
            yield
        }";
    assert_eq!(block(lines), found("64*id0 in blocks of 64 by inner; i in blocks of 16 by 1; bounded: inner"));
    // From the end to the beginning.
    let backwards = lines.replace("add %column, %i0", "sub %column, %i0");
    assert_eq!(block(&backwards), Err(Obstacle::Range));
}

#[test]
fn a_constant_stride_divides_the_index() {
    let lines = "%sixteen = const {value = 16} : tile<i64, [64, 16]>
        %lines = mul %row, %sixteen : tile<i64, [64, 16]>
        %to = add %lines, %column : tile<i64, [64, 16]>
        %v = load %x, %to : tile<bf16, [64, 16]>";
    assert_eq!(block(lines), found("64*id0 in blocks of 64 by 16; 0 in blocks of 16 by 1; bounded: "));
    let behind = lines
        .replace("%v =", "%five = const {value = 5} : tile<i64, [64, 16]>\n%to2 = add %to, %five : tile<i64, [64, 16]>\n%v =")
        .replace("%x, %to ", "%x, %to2 ");
    assert_eq!(block(&behind), found("from 5; 64*id0 in blocks of 64 by 16; 0 in blocks of 16 by 1; bounded: "));
}

#[test]
fn columns_may_be_contiguous() {
    let lines = "%lines = mul %column, %high : tile<i64, [64, 16]>
        %to = add %lines, %row : tile<i64, [64, 16]>
        %v = load %x, %to {mask = %both} : tile<bf16, [64, 16]>";
    assert_eq!(block(lines), found("64*id0 < rows by 1; 0 < inner by rows; bounded: "));
}

/// The part of the index that is no position along an axis of the tile counts the matrices.
#[test]
fn a_batch_has_a_further_axis() {
    let of = |start: &str| {
        block(&format!(
            "%size = mul %rows, %inner : i64
            %start = {start} : i64
            %s0 = broadcast %start : tile<i64, [64, 16]>
            %to = add %index, %s0 : tile<i64, [64, 16]>
            %v = load %x, %to {{mask = %both}} : tile<bf16, [64, 16]>"
        ))
    };
    assert_eq!(
        of("mul %nth, %size"),
        found("64*id0 < rows by inner; 0 < inner by 1; id2 in blocks of 1 by size; bounded: ").map(|text| text.replace("size", "mul"))
    );
    // The same matrix in all programs.
    assert_eq!(of("mul %at, %size"), found("from mul; 64*id0 < rows by inner; 0 < inner by 1; bounded: "));
    assert_eq!(of("xor %nth, %size"), Err(Obstacle::Launch));
}

#[test]
fn a_store_writes_a_block() {
    let store = "%v = const {value = 1.0} : tile<bf16, [64, 16]>
        store %y, %index, %v {mask = %both}";
    assert_eq!(block(store), found("64*id0 < rows by inner; 0 < inner by 1; bounded: "));
}

#[test]
fn obstacles() {
    let load = |options: &str| block(&format!("%v = load %x, %index {{{options}}} : tile<bf16, [64, 16]>"));
    let ones = |value: &str| {
        block(&format!(
            "%o = const {{value = {value}}} : tile<bf16, [64, 16]>
            %v = load %x, %index {{mask = %both, other = %o}} : tile<bf16, [64, 16]>"
        ))
    };
    assert_eq!(ones("1.0"), Err(Obstacle::Other));
    assert_eq!(ones("-0.0"), Err(Obstacle::Other));
    assert!(ones("0.0").is_ok());
    assert_eq!(load("cache = \"cg\""), Err(Obstacle::Cache));
    assert_eq!(load("volatile = true"), Err(Obstacle::Cache));
    assert_eq!(block("%v = load %y, %index : tile<bf16, [64, 16]>"), Err(Obstacle::Tensor));
    assert_eq!(block("%v = load %x, %r : tile<bf16, [64]>"), Err(Obstacle::Rank));
    assert_eq!(block("%s = xor %row, %column : tile<i64, [64, 16]>\n%v = load %x, %s : tile<bf16, [64, 16]>"), Err(Obstacle::Index));
    assert_eq!(block("%s = add %row, %column : tile<i64, [64, 16]>\n%v = load %x, %s : tile<bf16, [64, 16]>"), Err(Obstacle::Neighbours));
    let mask = |lines: &str| block(&format!("{lines}\n%v = load %x, %index {{mask = %m}} : tile<bf16, [64, 16]>"));
    assert_eq!(mask("%m = ge %row, %high : tile<bool, [64, 16]>"), Err(Obstacle::Mask));
    assert_eq!(mask("%m = lt %index, %high : tile<bool, [64, 16]>"), Err(Obstacle::Mask));
    assert_eq!(mask("%m = broadcast %on : tile<bool, [64, 16]>"), Err(Obstacle::Mask));
    // Two ends of an axis.
    assert_eq!(mask("%more = lt %row, %wide : tile<bool, [64, 16]>\n%m = and %both, %more : tile<bool, [64, 16]>"), Err(Obstacle::Mask));
    assert!(mask("%more = lt %row, %high : tile<bool, [64, 16]>\n%m = and %both, %more : tile<bool, [64, 16]>").is_ok());
    let own = |scalar: &str, lines: &str| {
        block(&format!(
            "{lines}
            %s0 = broadcast {scalar} : tile<i64, [64, 16]>
            %s1 = mul %row, %s0 : tile<i64, [64, 16]>
            %s2 = add %s1, %column : tile<i64, [64, 16]>
            %v = load %x, %s2 : tile<bf16, [64, 16]>"
        ))
    };
    assert_eq!(own("%nth", ""), Err(Obstacle::Launch));
    assert_eq!(mask("%n0 = broadcast %nth : tile<i64, [64, 16]>\n%m = lt %row, %n0 : tile<bool, [64, 16]>"), Err(Obstacle::Range));
}

/// The index of a block's first element is a scalar without a sign.
#[test]
fn indices_that_may_be_negative() {
    let at = |lines: &str| {
        block(&format!(
            "{lines}
            %own = min %s, %nth : i64
            %s0 = broadcast %own : tile<i64, [64, 16]>
            %k = add %column, %s0 : tile<i64, [64, 16]>
            %near = lt %k, %wide : tile<bool, [64, 16]>
            %to = add %of_row, %k : tile<i64, [64, 16]>
            %v = load %x, %to {{mask = %near}} : tile<bf16, [64, 16]>"
        ))
        .map(|text| text.rsplit_once(": ").unwrap().1.to_string())
    };
    assert_eq!(at("%s = div %at, %inner : i64"), found("inner at"));
    assert_eq!(at("%s = min %at, %id : i64"), found("at"));
    assert_eq!(at("%s = select %on, %at, %rows : i64"), found("select"));
    assert_eq!(at("%s = cast %on : i64"), found(""));
    assert_eq!(at("%s = length %y : i64"), found("length"));
    assert_eq!(at("%n = cast %at : i32\n%s = cast %n : i64"), found("at"));
    assert_eq!(at("%m = mul %at, %inner : i64\n%s = rem %m, %rows : i64"), found("inner at"));
    assert_eq!(at("%n = mul %nth, %at : i64\n%s = min %n, %inner : i64"), found("inner at"));
    // The test of the launch finds that the factor is negative.
    assert_eq!(at("%one = const {value = -1} : i64\n%s = mul %one, %id : i64"), found("const"));
    // What may be negative or overflow in some launches is a number that the launch tests, as the program computes it.
    for (lines, bounded) in [
        ("%zero = const {value = 0} : i64\n%s = sub %zero, %id : i64", "sub"),
        ("%s = sub %id, %inner : i64", "sub"),
        ("%s = shl %id, %inner : i64", "shl"),
        ("%m = mul %id, %inner : i64\n%n = mul %m, %rows : i64\n%s = div %n, %rows : i64", "rows mul"),
        (
            "%m = mul %id, %inner : i64\n%n = mul %id, %rows : i64\n%p = mul %id, %at : i64\n%mn = add %m, %n : i64\n%s = add %mn, %p : i64",
            "add",
        ),
    ] {
        assert_eq!(at(lines), found(bounded), "{lines}");
    }
}
