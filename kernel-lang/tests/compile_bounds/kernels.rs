//! Generated kernels in the text form: each deep, wide or shared in one way, of a size that is given.

use std::fmt::Write;

/// The text of a kernel that holds these lines.
fn kernel(params: &str, lines: &str) -> String {
    format!("kernel @k({params}) {{\n{lines}return\n}}\n")
}

const VECTOR: &str = "%x: ptr<f32>, %y: ptr_mut<f32>, %n: i64, %m: i64";

/// `%lanes`, `%limit` and `%inside`: a tile of 64 positions, and which of them are below `%n`.
const LANES: &str = "%lanes = arange {start = 0, end = 64} : tile<i64, [64]>
%limit = broadcast %n : tile<i64, [64]>
%inside = lt %lanes, %limit : tile<bool, [64]>
%zero = const {value = 0} : i64
%one = const {value = 1} : i64
";

/// `v = v * v + v`, `depth` times, in front of a loop with a masked store.
pub(crate) fn shared_floats(depth: usize) -> String {
    let mut lines = format!("{LANES}%v0 = cast %lanes : tile<f32, [64]>\n");
    for at in 0..depth {
        let _ = writeln!(lines, "%s{at} = mul %v{at}, %v{at} : tile<f32, [64]>\n%v{} = add %s{at}, %v{at} : tile<f32, [64]>", at + 1);
    }
    lines += &store_in_loop(&format!("%v{depth}"));
    kernel(VECTOR, &lines)
}

/// A masked store to row `%i` of each of `%m` rows.
fn store_in_loop(value: &str) -> String {
    format!(
        "for %zero, %m, %one (%i: i64) {{
        %row = mul %i, %n : i64
        %first = broadcast %row : tile<i64, [64]>
        %at = add %first, %lanes : tile<i64, [64]>
        store %y, %at, {value} {{mask = %inside}}
        yield
        }}\n"
    )
}

/// An index that is added to itself, and one that is multiplied by itself, `depth` times; `source` begins it.
fn shared_index(source: &str, depth: usize) -> String {
    let mut lines = format!("{LANES}{source}");
    for at in 0..depth {
        let _ = writeln!(lines, "%k{at} = add %p{at}, %p{at} : tile<i64, [64]>\n%p{} = sub %k{at}, %p{at} : tile<i64, [64]>", at + 1);
    }
    let _ = writeln!(lines, "%v = load %x, %p{depth} {{mask = %inside}} : tile<f32, [64]>\nstore %y, %p{depth}, %v");
    kernel(&format!("{VECTOR}, %p: ptr<i64>"), &lines)
}

/// Offsets that are sums of positions.
pub(crate) fn shared_positions(depth: usize) -> String {
    shared_index("%two = const {value = 2} : tile<i64, [64]>\n%p0 = mul %lanes, %two : tile<i64, [64]>\n", depth)
}

/// Offsets that come from memory.
pub(crate) fn shared_gathers(depth: usize) -> String {
    shared_index("%p0 = load %p, %lanes {mask = %inside} : tile<i64, [64]>\n", depth)
}

/// Offsets of scalars that are multiplied by themselves.
pub(crate) fn shared_products(depth: usize) -> String {
    let mut lines = format!("{LANES}%p0 = add %n, %m : i64\n");
    for at in 0..depth {
        let _ = writeln!(lines, "%k{at} = mul %p{at}, %p{at} : i64\n%p{} = add %k{at}, %p{at} : i64", at + 1);
    }
    let _ = writeln!(lines, "for %zero, %n, %one (%i: i64) {{\n%a = mul %i, %p{depth} : i64\n%b = broadcast %a : tile<i64, [64]>");
    let _ = writeln!(lines, "%at = add %b, %lanes : tile<i64, [64]>\n%c = lt %at, %limit : tile<bool, [64]>");
    lines += "%v = load %x, %at {mask = %c} : tile<f32, [64]>\nstore %y, %at, %v {mask = %c}\nyield\n}\n";
    kernel(VECTOR, &lines)
}

/// Scalars below a bound that a loop begins at.
pub(crate) fn shared_starts(depth: usize) -> String {
    let mut lines = format!("{LANES}%p0 = program_id : i64\n");
    for at in 0..depth {
        let _ = writeln!(lines, "%p{} = add %p{at}, %p{at} : i64", at + 1);
    }
    let _ =
        writeln!(lines, "%step = const {{value = 64}} : i64\nfor %p{depth}, %n, %step (%i: i64) {{\n%b = broadcast %i : tile<i64, [64]>");
    let _ = writeln!(lines, "%at = add %b, %lanes : tile<i64, [64]>\n%c = lt %at, %limit : tile<bool, [64]>");
    lines += "%v = load %x, %at {mask = %c} : tile<f32, [64]>\nstore %y, %at, %v {mask = %c}\nyield\n}\n";
    kernel(VECTOR, &lines)
}

/// Masks that are conjunctions of conjunctions: each uses the one before twice.
pub(crate) fn shared_masks(depth: usize) -> String {
    let mut lines = format!("{LANES}%m0 = lt %lanes, %limit : tile<bool, [64]>\n");
    for at in 0..depth {
        let _ = writeln!(lines, "%c{at} = const {{value = {}}} : tile<i64, [64]>", at + 100);
        let _ = writeln!(lines, "%d{at} = add %limit, %c{at} : tile<i64, [64]>\n%e{at} = lt %lanes, %d{at} : tile<bool, [64]>");
        let _ = writeln!(lines, "%a{at} = and %m{at}, %e{at} : tile<bool, [64]>\n%m{} = and %a{at}, %m{at} : tile<bool, [64]>", at + 1);
    }
    lines += "%v = cast %lanes : tile<f32, [64]>\n";
    lines += &store_in_loop("%v").replace("mask = %inside", &format!("mask = %m{depth}"));
    let _ = writeln!(lines, "store %y, %lanes, %v {{mask = %m{depth}}}");
    kernel(VECTOR, &lines)
}

/// As [`shared_masks`], of masks of two axes.
pub(crate) fn shared_boxes(depth: usize) -> String {
    let mut lines = String::from(
        "%i = arange {start = 0, end = 16} : tile<i64, [16]>\n%rows = expand_dims %i {axis = 1} : tile<i64, [16, 1]>
        %columns = expand_dims %i {axis = 0} : tile<i64, [1, 16]>\n%a = broadcast %rows : tile<i64, [16, 16]>
        %b = broadcast %columns : tile<i64, [16, 16]>\n%w = broadcast %m : tile<i64, [16, 16]>\n%c = mul %a, %w : tile<i64, [16, 16]>
        %at = add %c, %b : tile<i64, [16, 16]>\n%limit = broadcast %n : tile<i64, [16, 16]>\n%m0 = lt %b, %limit : tile<bool, [16, 16]>\n",
    );
    for at in 0..depth {
        let side = if at % 2 == 0 { "%a" } else { "%b" };
        let _ = writeln!(lines, "%c{at} = const {{value = {}}} : i64\n%d{at} = add %n, %c{at} : i64", at + 100);
        let _ = writeln!(lines, "%f{at} = broadcast %d{at} : tile<i64, [16, 16]>\n%e{at} = lt {side}, %f{at} : tile<bool, [16, 16]>");
        let (a, b) = (format!("%a{at} = and %m{at}, %e{at}"), format!("%m{} = and %a{at}, %m{at}", at + 1));
        let _ = writeln!(lines, "{a} : tile<bool, [16, 16]>\n{b} : tile<bool, [16, 16]>");
    }
    let _ = writeln!(lines, "%v = load %x, %at {{mask = %m{depth}}} : tile<f32, [16, 16]>\nstore %y, %at, %v {{mask = %m{depth}}}");
    kernel(VECTOR, &lines)
}

/// Conditions that are assumed, each a conjunction of two others.
pub(crate) fn shared_assumptions(depth: usize) -> String {
    let mut lines = String::from("%zero = const {value = 0} : i64\n%one = const {value = 1.0} : f32\n%c0 = lt %n, %m : bool\n");
    for at in 0..depth {
        let _ = writeln!(lines, "%k{at} = const {{value = {at}}} : i64\n%d{at} = lt %n, %k{at} : bool\n%e{at} = and %c{at}, %d{at} : bool");
        let _ = writeln!(lines, "%c{} = and %e{at}, %c{at} : bool", at + 1);
    }
    let _ = writeln!(lines, "assert %c{depth} {{message = \"assumed\", assumed = true}}\nstore %y, %zero, %one");
    kernel(VECTOR, &lines)
}

/// Many assumptions, one behind the other.
pub(crate) fn many_assumptions(count: usize) -> String {
    let mut lines = String::from("%zero = const {value = 0} : i64\n%one = const {value = 1.0} : f32\n");
    for at in 0..count {
        let _ = writeln!(lines, "%k{at} = const {{value = {at}}} : i64\n%d{at} = ge %n, %k{at} : bool");
        let _ = writeln!(lines, "assert %d{at} {{message = \"assumed\", assumed = true}}\nstore %y, %k{at}, %one");
    }
    kernel(VECTOR, &lines)
}

/// Prefetched loads whose addresses share `depth` deep.
pub(crate) fn shared_prefetch(depth: usize) -> String {
    let mut lines = format!("{LANES}%step = const {{value = 64}} : i64\n%acc = const {{value = 0.0}} : tile<f32, [64]>\n");
    lines += "%r = for %zero, %m, %step, %acc {num_stages = 3} (%i: i64, %sum: tile<f32, [64]>) {\n%q0 = add %i, %zero : i64\n";
    for at in 0..depth {
        let _ = writeln!(lines, "%h{at} = mul %q{at}, %q{at} : i64\n%q{} = add %h{at}, %q{at} : i64", at + 1);
    }
    let _ = writeln!(lines, "%b = broadcast %q{depth} : tile<i64, [64]>\n%at = add %b, %lanes : tile<i64, [64]>");
    lines +=
        "%v = load %x, %at {mask = %inside} : tile<f32, [64]>\n%next = add %sum, %v : tile<f32, [64]>\nyield %next\n} : tile<f32, [64]>\n";
    lines += "store %y, %lanes, %r {mask = %inside}\n";
    kernel(VECTOR, &lines)
}

/// A chain of `length` float ops.
pub(crate) fn chain_of_floats(length: usize) -> String {
    let mut lines = format!("{LANES}%v0 = load %x, %lanes {{mask = %inside}} : tile<f32, [64]>\n%c = cast %lanes : tile<f32, [64]>\n");
    for at in 0..length {
        let op = ["add", "mul"][at % 2];
        let _ = writeln!(lines, "%v{} = {op} %v{at}, %c : tile<f32, [64]>", at + 1);
    }
    lines += &store_in_loop(&format!("%v{length}"));
    kernel(VECTOR, &lines)
}

/// A chain of scalars that ends in an address: each adds a parameter of the kernel.
pub(crate) fn chain_of_scalars(length: usize) -> String {
    let params: Vec<String> = (0..100).map(|param| format!("%p{param}: i64")).collect();
    let mut lines = format!("{LANES}%s0 = mul %n, %m : i64\n");
    for at in 0..length {
        let _ = writeln!(lines, "%s{} = add %s{at}, %p{} : i64", at + 1, at % 100);
    }
    let _ = writeln!(lines, "%b = broadcast %s{length} : tile<i64, [64]>\n%at = add %b, %lanes : tile<i64, [64]>");
    lines += "%v = load %x, %at {mask = %inside} : tile<f32, [64]>\nstore %y, %at, %v {mask = %inside}\n";
    kernel(&format!("{VECTOR}, {}", params.join(", ")), &lines)
}

/// Ops in front of a loop over rows from any address: its bound, a tile of indices, and a factor of what it stores.
pub(crate) fn chains_in_front_of_a_loop(length: usize) -> String {
    let mut lines = String::from("%p = program_id : i64\n%e0 = mul %p, %m : i64\n%row = broadcast %e0 : tile<i64, [512]>\n");
    lines += "%lanes = arange {start = 0, end = 512} : tile<i64, [512]>\n%t0 = add %row, %lanes : tile<i64, [512]>\n%v0 = cast %lanes : tile<f32, [512]>\n";
    for at in 0..length {
        let next = at + 1;
        let _ = writeln!(lines, "%e{next} = add %e{at}, %n : i64\n%b{at} = broadcast %e{at} : tile<i64, [512]>");
        let _ = writeln!(lines, "%t{next} = add %t{at}, %b{at} : tile<i64, [512]>\n%v{next} = mul %v{at}, %v{at} : tile<f32, [512]>");
    }
    let _ = writeln!(
        lines,
        "%zero = const {{value = 0}} : i64\n%step = const {{value = 512}} : i64\nfor %zero, %e{length}, %step (%i: i64) {{"
    );
    lines += "%first = broadcast %i : tile<i64, [512]>\n%at = add %first, %lanes : tile<i64, [512]>\n";
    let _ = writeln!(lines, "%end = broadcast %e{length} : tile<i64, [512]>\n%c = lt %at, %end : tile<bool, [512]>");
    let _ = writeln!(lines, "%to = add %t{length}, %first : tile<i64, [512]>\n%w = load %x, %to {{mask = %c}} : tile<f32, [512]>");
    let _ = writeln!(lines, "%scaled = mul %w, %v{length} : tile<f32, [512]>\nstore %y, %to, %scaled {{mask = %c}}\nyield\n}}");
    let _ = writeln!(lines, "for %zero, %e{length}, %step (%j: i64) {{\n%from = broadcast %j : tile<i64, [512]>");
    let _ = writeln!(lines, "%u = add %t{length}, %from : tile<i64, [512]>\n%d = add %from, %lanes : tile<i64, [512]>");
    let _ = writeln!(lines, "%stop = broadcast %e{length} : tile<i64, [512]>\n%f = lt %d, %stop : tile<bool, [512]>");
    lines += "%a = load %x, %u {mask = %f} : tile<f32, [512]>\nstore %y, %u, %a {mask = %f}\nyield\n}\n";
    kernel(VECTOR, &lines)
}

/// A chain of offsets, each of which is stored to.
pub(crate) fn chain_of_offsets(length: usize) -> String {
    let mut lines = format!("{LANES}%at0 = add %lanes, %limit : tile<i64, [64]>\n%v = cast %lanes : tile<f32, [64]>\n");
    for at in 0..length / 2 {
        let _ = writeln!(lines, "store %y, %at{at}, %v {{mask = %inside}}\n%at{} = add %at{at}, %limit : tile<i64, [64]>", at + 1);
    }
    kernel(VECTOR, &lines)
}

/// A chain of offsets of which nothing is known but where they come from.
pub(crate) fn chain_of_gathers(length: usize) -> String {
    let mut lines = format!("{LANES}%at0 = load %p, %lanes {{mask = %inside}} : tile<i64, [64]>\n%v = cast %lanes : tile<f32, [64]>\n");
    for at in 0..length / 2 {
        let _ = writeln!(lines, "store %y, %at{at}, %v {{mask = %inside}}\n%at{} = add %at{at}, %limit : tile<i64, [64]>", at + 1);
    }
    kernel(&format!("{VECTOR}, %p: ptr<i64>"), &lines)
}

/// A chain of ops that move elements.
pub(crate) fn chain_of_shapes(length: usize) -> String {
    let mut lines = String::from(
        "%i = arange {start = 0, end = 256} : tile<i64, [256]>\n%t0 = reshape %i : tile<i64, [16, 16]>\n%f = load %x, %t0 : tile<f32, [16, 16]>\n",
    );
    for at in 0..length {
        let op = [format!("flip %t{at} {{axis = 0}}"), format!("permute %t{at} {{order = [1, 0]}}")][at % 2].clone();
        let _ = writeln!(lines, "%t{} = {op} : tile<i64, [16, 16]>", at + 1);
    }
    let _ = writeln!(lines, "store %y, %t{length}, %f");
    kernel(VECTOR, &lines)
}

/// A chain of masks, all of which must hold.
pub(crate) fn chain_of_masks(length: usize) -> String {
    let mut lines = format!("{LANES}%m0 = lt %lanes, %limit : tile<bool, [64]>\n");
    for at in 0..length / 4 {
        let _ = writeln!(lines, "%c{at} = const {{value = {}}} : i64\n%b{at} = broadcast %c{at} : tile<i64, [64]>", at + 64);
        let _ = writeln!(lines, "%d{at} = add %limit, %b{at} : tile<i64, [64]>\n%e{at} = lt %lanes, %d{at} : tile<bool, [64]>");
        let _ = writeln!(lines, "%m{} = and %m{at}, %e{at} : tile<bool, [64]>", at + 1);
    }
    let _ = writeln!(lines, "%v = cast %lanes : tile<f32, [64]>\nstore %y, %lanes, %v {{mask = %m{}}}", length / 4);
    kernel(VECTOR, &lines)
}

/// One value that `uses` ops use, and one that is stored as often.
pub(crate) fn wide(uses: usize) -> String {
    let mut lines = format!("{LANES}%v = load %x, %lanes {{mask = %inside}} : tile<f32, [64]>\n%s0 = add %v, %v : tile<f32, [64]>\n");
    for at in 0..uses {
        let _ = writeln!(lines, "%s{} = add %s{at}, %v : tile<f32, [64]>", at + 1);
    }
    let _ = writeln!(lines, "store %y, %lanes, %s{uses} {{mask = %inside}}");
    kernel(VECTOR, &lines)
}

/// Stores and loads of one tensor, one behind the other.
pub(crate) fn many_accesses(count: usize) -> String {
    let mut lines = String::from(LANES);
    for at in 0..count / 5 {
        let _ = writeln!(lines, "%k{at} = const {{value = {}}} : i64\n%b{at} = broadcast %k{at} : tile<i64, [64]>", at * 64);
        let _ = writeln!(lines, "%a{at} = add %lanes, %b{at} : tile<i64, [64]>");
        let _ =
            writeln!(lines, "%v{at} = load %y, %a{at} {{mask = %inside}} : tile<f32, [64]>\nstore %y, %a{at}, %v{at} {{mask = %inside}}");
    }
    kernel(VECTOR, &lines)
}

/// Pairs of neighbours at an index from memory that is added to itself, `depth` times.
pub(crate) fn shared_pairs(depth: usize) -> String {
    let mut lines = format!("{LANES}%p0 = load %p, %lanes {{mask = %inside}} : tile<i64, [64]>\n");
    for at in 0..depth {
        let _ = writeln!(lines, "%k{at} = add %p{at}, %p{at} : tile<i64, [64]>\n%p{} = sub %k{at}, %p{at} : tile<i64, [64]>", at + 1);
    }
    lines += "%ones = const {value = 1} : tile<i64, [64]>\n";
    let _ = writeln!(lines, "%even = add %p{depth}, %p{depth} : tile<i64, [64]>\n%odd = add %even, %ones : tile<i64, [64]>");
    lines += "%v = load %x, %even {mask = %inside} : tile<f32, [64]>\n%w = load %x, %odd {mask = %inside} : tile<f32, [64]>\n";
    lines += "%sum = add %v, %w : tile<f32, [64]>\nstore %y, %lanes, %sum {mask = %inside}\n";
    kernel(&format!("{VECTOR}, %p: ptr<i64>"), &lines)
}

/// Pairs of neighbours of one tensor, of rows whose length may be even: all are alike but for their constants.
pub(crate) fn many_pairs(count: usize) -> String {
    let mut lines = format!(
        "{LANES}%twice = add %lanes, %lanes : tile<i64, [64]>\n%row = mul %m, %n : i64\n%first = broadcast %row : tile<i64, [64]>\n"
    );
    lines += "%at = add %first, %twice : tile<i64, [64]>\n%v0 = cast %lanes : tile<f32, [64]>\n";
    for at in 0..count {
        for side in 0..2 {
            let _ = writeln!(lines, "%c{at}_{side} = const {{value = {}}} : tile<i64, [64]>", 2 * at + side);
            let _ = writeln!(lines, "%a{at}_{side} = add %at, %c{at}_{side} : tile<i64, [64]>");
            let _ = writeln!(lines, "%l{at}_{side} = load %x, %a{at}_{side} {{mask = %inside}} : tile<f32, [64]>");
        }
        let _ = writeln!(lines, "%s{at} = mul %l{at}_0, %l{at}_1 : tile<f32, [64]>\n%v{} = add %v{at}, %s{at} : tile<f32, [64]>", at + 1);
    }
    let _ = writeln!(lines, "store %y, %lanes, %v{count} {{mask = %inside}}");
    kernel(VECTOR, &lines)
}

/// Indices that are divided by numbers from memory: each division needs a test of its own.
pub(crate) fn many_divisions(count: usize) -> String {
    let mut lines = String::from("%lanes = arange {start = 0, end = 256} : tile<i64, [256]>\n%v = cast %lanes : tile<f32, [256]>\n");
    for at in 0..count / 4 {
        let _ = writeln!(lines, "%k{at} = const {{value = {at}}} : i64\n%d{at} = load %p, %k{at} : i64");
        let _ = writeln!(
            lines,
            "%b{at} = broadcast %d{at} : tile<i64, [256]>\n%q{at} = div %lanes, %b{at} : tile<i64, [256]>\nstore %y, %q{at}, %v"
        );
    }
    kernel(&format!("{VECTOR}, %p: ptr<i64>"), &lines)
}

/// A chain of divisions of indices.
pub(crate) fn chain_of_divisions(count: usize) -> String {
    let mut lines = String::from(
        "%lanes = arange {start = 0, end = 256} : tile<i64, [256]>\n%v = cast %lanes : tile<f32, [256]>\n%b = broadcast %n : tile<i64, [256]>\n%q0 = div %lanes, %b : tile<i64, [256]>\n",
    );
    for at in 0..count {
        let _ = writeln!(lines, "%q{} = {} %q{at}, %b : tile<i64, [256]>", at + 1, ["add", "div", "mul"][at % 3]);
    }
    let _ = writeln!(lines, "store %y, %q{count}, %v");
    kernel(VECTOR, &lines)
}

/// `%o`, a flat index, taken apart into `%row` and `%column`; and `%v`, a tile that is loaded in order.
const FLAT: &str = "%o = arange {start = 0, end = 256} : tile<i64, [256]>
%width = broadcast %n : tile<i64, [256]>
%row = div %o, %width : tile<i64, [256]>
%column = rem %o, %width : tile<i64, [256]>
%v = load %x, %o : tile<f32, [256]>
";

/// A chain of sums and products of flattened indices, in a straight-line region that is not too long to be split.
pub(crate) fn chain_of_flattened_indices(count: usize) -> String {
    let mut lines = format!("{FLAT}%q0 = add %row, %column : tile<i64, [256]>\n");
    for at in 0..count {
        let _ = writeln!(lines, "%q{} = {} %q{at}, %column : tile<i64, [256]>", at + 1, ["add", "sub", "mul", "min"][at % 4]);
    }
    let _ = writeln!(lines, "store %y, %q{count}, %v");
    kernel(VECTOR, &lines)
}

/// Each index is the sum of the two before it, and each is that of an access, whose mask compares it.
pub(crate) fn shared_flattened_indices(depth: usize) -> String {
    let mut lines = format!("{FLAT}%q0 = add %row, %column : tile<i64, [256]>\n%q1 = add %row, %row : tile<i64, [256]>\n");
    for at in 2..depth {
        let _ = writeln!(lines, "%q{at} = add %q{}, %q{} : tile<i64, [256]>", at - 1, at - 2);
        let _ = writeln!(lines, "%m{at} = lt %q{at}, %width : tile<bool, [256]>\nstore %y, %q{at}, %v {{mask = %m{at}}}");
    }
    kernel(VECTOR, &lines)
}

/// Accesses with masks at coordinates that differ by constants, as those of a window.
pub(crate) fn many_flattened_accesses(count: usize) -> String {
    let mut lines = format!("{FLAT}%zero = const {{value = 0}} : tile<i64, [256]>\n");
    for at in 0..count / 6 {
        let _ =
            writeln!(lines, "%k{at} = const {{value = {}}} : tile<i64, [256]>\n%c{at} = sub %column, %k{at} : tile<i64, [256]>", at % 50);
        let _ = writeln!(lines, "%m{at} = ge %c{at}, %zero : tile<bool, [256]>\n%p{at} = mul %row, %width : tile<i64, [256]>");
        let _ = writeln!(lines, "%a{at} = add %p{at}, %c{at} : tile<i64, [256]>\nstore %y, %a{at}, %v {{mask = %m{at}}}");
    }
    kernel(VECTOR, &lines)
}

/// Selections between the two weights of runs, of which each needs a load of its own.
pub(crate) fn many_selections(count: usize) -> String {
    let mut lines = String::from(
        "%run = arange {start = 0, end = 128} : tile<i64, [128]>
%end = load %ends, %run {in_bounds = true} : tile<i32, [128]>
%eight = const {value = 8} : tile<i32, [128]>
%crosses = lt %end, %eight : tile<bool, [128]>
%w0 = load %w, %run {in_bounds = true} : tile<f32, [128]>
%f0 = expand_dims %w0 {axis = 1} : tile<f32, [128, 1]>
%first = broadcast %f0 : tile<f32, [128, 8]>
%e0 = expand_dims %end {axis = 1} : tile<i32, [128, 1]>
%e1 = broadcast %e0 : tile<i32, [128, 8]>
%p0 = arange {start = 0, end = 8} : tile<i64, [8]>
%p1 = expand_dims %p0 {axis = 0} : tile<i64, [1, 8]>
%p2 = broadcast %p1 : tile<i64, [128, 8]>
%position = cast %p2 : tile<i32, [128, 8]>
%r0 = expand_dims %run {axis = 1} : tile<i64, [128, 1]>
%r1 = broadcast %r0 : tile<i64, [128, 8]>
%stride = const {value = 8} : tile<i64, [128, 8]>
%r2 = mul %r1, %stride : tile<i64, [128, 8]>
%at = add %r2, %p2 : tile<i64, [128, 8]>
",
    );
    for at in 0..count / 10 {
        let _ = writeln!(lines, "%k{at} = const {{value = {at}}} : tile<i64, [128]>\n%o{at} = add %run, %k{at} : tile<i64, [128]>");
        let _ = writeln!(lines, "%s{at} = load %w, %o{at} {{mask = %crosses, in_bounds = true}} : tile<f32, [128]>");
        let _ = writeln!(
            lines,
            "%t{at} = expand_dims %s{at} {{axis = 1}} : tile<f32, [128, 1]>\n%u{at} = broadcast %t{at} : tile<f32, [128, 8]>"
        );
        let _ = writeln!(lines, "%c{at} = ge %position, %e1 : tile<bool, [128, 8]>");
        let _ = writeln!(lines, "%v{at} = select %c{at}, %u{at}, %first : tile<f32, [128, 8]>");
        let _ = writeln!(lines, "%d{at} = add %v{at}, %v{at} : tile<f32, [128, 8]>\n%h{at} = cast %d{at} : tile<f16, [128, 8]>");
        let _ = writeln!(lines, "store %y, %at, %h{at} {{in_bounds = true, align = 16}}");
    }
    kernel("%ends: ptr<i32>, %w: ptr<f32>, %y: ptr_mut<f16>", &lines)
}

/// Reductions of tiles, one behind the other.
pub(crate) fn many_reductions(count: usize) -> String {
    let mut lines = format!("{LANES}%v = load %x, %lanes {{mask = %inside}} : tile<f32, [64]>\n%s0 = const {{value = 0.0}} : f32\n");
    for at in 0..count / 5 {
        let _ =
            writeln!(lines, "%r{at} = reduce %v (%a{at}: f32, %b{at}: f32) {{\n%c{at} = max %a{at}, %b{at} : f32\nyield %c{at}\n}} : f32");
        let _ = writeln!(lines, "%s{} = add %s{at}, %r{at} : f32", at + 1);
    }
    let _ = writeln!(lines, "store %y, %zero, %s{}", count / 5);
    kernel(VECTOR, &lines)
}

/// Loops one behind the other, which count in 32 bits and load ahead.
pub(crate) fn many_loops(count: usize) -> String {
    let mut lines = format!(
        "{LANES}%z = const {{value = 0}} : i32\n%o = const {{value = 1}} : i32\n%w = cast %m : i32\n%s0 = const {{value = 0.0}} : tile<f32, [64]>\n"
    );
    for at in 0..count / 6 {
        let _ =
            writeln!(lines, "%s{} = for %z, %w, %o, %s{at} (%i{at}: i32, %t{at}: tile<f32, [64]>) {{\n%j{at} = cast %i{at} : i64", at + 1);
        let _ = writeln!(lines, "%b{at} = broadcast %j{at} : tile<i64, [64]>\n%a{at} = add %lanes, %b{at} : tile<i64, [64]>");
        let _ = writeln!(
            lines,
            "%v{at} = load %x, %a{at} : tile<f32, [64]>\n%u{at} = add %t{at}, %v{at} : tile<f32, [64]>\nyield %u{at}\n}} : tile<f32, [64]>"
        );
    }
    let _ = writeln!(lines, "store %y, %lanes, %s{} {{mask = %inside}}", count / 6);
    kernel(VECTOR, &lines)
}

/// Branches one behind the other, with tiles that are accessed between.
pub(crate) fn many_branches(count: usize) -> String {
    let mut lines = format!("{LANES}%v0 = load %x, %lanes {{mask = %inside}} : tile<f32, [64]>\n%on = lt %n, %m : bool\n");
    for at in 0..count / 6 {
        let _ = writeln!(lines, "%k{at} = const {{value = {at}}} : i64\n%b{at} = broadcast %k{at} : tile<i64, [64]>");
        let _ = writeln!(lines, "%a{at} = add %lanes, %b{at} : tile<i64, [64]>\nstore %y, %a{at}, %v{at} {{mask = %inside}}");
        let _ = writeln!(
            lines,
            "%v{} = if %on () {{\n%w{at} = add %v{at}, %v{at} : tile<f32, [64]>\nyield %w{at}\n}} () {{\nyield %v{at}\n}} : tile<f32, [64]>",
            at + 1
        );
    }
    let _ = writeln!(lines, "store %y, %lanes, %v{} {{mask = %inside}}", count / 6);
    kernel(VECTOR, &lines)
}

/// A loop that carries `count` scalars, each of which it moves on.
pub(crate) fn carried_scalars(count: usize) -> String {
    carried(count, "i64", "%n", |at| format!("add %p{at}, %one : i64"), "%lanes")
}

/// A loop that carries `count` tiles of indices and moves each by a step.
pub(crate) fn carried_indices(count: usize) -> String {
    carried(count, "tile<i64, [64]>", "%lanes", |at| format!("add %p{at}, %limit : tile<i64, [64]>"), "%p0")
}

/// A loop in which each carried value becomes the next one.
pub(crate) fn carried_shift(count: usize) -> String {
    carried(count, "tile<i64, [64]>", "%lanes", |at| format!("mul %p{}, %p{at} : tile<i64, [64]>", at.max(1) - 1), "%p0")
}

fn carried(count: usize, ty: &str, first: &str, next: impl Fn(usize) -> String, at: &str) -> String {
    let list = |item: &dyn Fn(usize) -> String| (0..count).map(item).collect::<Vec<_>>().join(", ");
    let (results, inits) = (list(&|at| format!("%r{at}")), list(&|_| first.to_string()));
    let (params, types, nexts) = (list(&|at| format!("%p{at}: {ty}")), list(&|_| ty.to_string()), list(&|at| format!("%t{at}")));
    let mut lines = format!("{LANES}%c = cast %lanes : tile<f32, [64]>\n{results} = for %zero, %m, %one, {inits} (%i: i64, {params}) {{\n");
    let _ = writeln!(lines, "store %y, {at}, %c {{mask = %inside}}");
    (0..count).for_each(|at| {
        let _ = writeln!(lines, "%t{at} = {}", next(at));
    });
    let _ = writeln!(lines, "yield {nexts}\n}} : {types}");
    kernel(VECTOR, &lines)
}

/// `count` parameters of the kernel, which are summed up.
pub(crate) fn parameters(count: usize) -> String {
    let params: Vec<String> =
        (0..count).map(|param| if param % 2 == 0 { format!("%p{param}: f32") } else { format!("%p{param}: ptr_mut<f32>") }).collect();
    let mut lines = format!("{LANES}%s0 = const {{value = 0.0}} : f32\n");
    for at in 0..count / 2 {
        let _ = writeln!(lines, "%s{} = add %s{at}, %p{} : f32\nstore %p{}, %zero, %s{at}", at + 1, 2 * at, 2 * at + 1);
    }
    kernel(&format!("{VECTOR}, {}", params.join(", ")), &lines)
}

/// Loops in loops.
pub(crate) fn nested_loops(depth: usize) -> String {
    let mut lines = String::from(LANES);
    let mut sum = String::from("%zero");
    for at in 0..depth {
        let _ = writeln!(lines, "%r{at} = for %zero, %m, %one, {sum} (%i{at}: i64, %s{at}: i64) {{\n%t{at} = add %s{at}, %i{at} : i64");
        sum = format!("%t{at}");
    }
    let _ = writeln!(
        lines,
        "%b = broadcast {sum} : tile<i64, [64]>\n%a = add %b, %lanes : tile<i64, [64]>\n%v = load %x, %a {{mask = %inside}} : tile<f32, [64]>\nstore %y, %a, %v"
    );
    for at in (0..depth).rev() {
        let _ = writeln!(lines, "yield {sum}\n}} : i64");
        sum = format!("%r{at}");
    }
    kernel(VECTOR, &lines)
}

/// A chain of scalars, with a branch that depends on each, and a number that is loaded at the start of a second chain.
pub(crate) fn chain_of_conditions(count: usize) -> String {
    let mut lines =
        format!("{LANES}%v = cast %lanes : tile<f32, [64]>\n%s0 = mul %n, %m : i64\n%f = load %x, %n : f32\n%t0 = cast %f : i64\n");
    for at in 0..count / 4 {
        for chain in ["s", "t"] {
            let next = at + 1;
            let _ = writeln!(
                lines,
                "%{chain}{next} = add %{chain}{at}, %m : i64\n%{chain}c{at} = lt %{chain}{next}, %n : bool\nif %{chain}c{at} () {{\n\
                 store %y, %lanes, %v {{mask = %inside}}\nyield\n}} () {{\nyield\n}}"
            );
        }
    }
    kernel(VECTOR, &lines)
}

/// Branches in branches.
pub(crate) fn nested_branches(depth: usize) -> String {
    let mut lines = format!("{LANES}%v = load %x, %lanes {{mask = %inside}} : tile<f32, [64]>\n");
    for at in 0..depth {
        let _ = writeln!(
            lines,
            "%k{at} = const {{value = {at}}} : i64\n%c{at} = lt %n, %k{at} : bool\nif %c{at} () {{\nstore %y, %lanes, %v {{mask = %inside}}"
        );
    }
    (0..depth).for_each(|_| lines += "yield\n} () {\nyield\n}\n");
    kernel(VECTOR, &lines)
}

/// Loops of a thousand iterations in one another that are written out.
pub(crate) fn repeated(depth: usize) -> String {
    let mut lines = String::from("%one = const {value = 1.0} : f32\n%zero = const {value = 0} : i64\n");
    for at in 0..depth {
        let _ = writeln!(lines, "static_for {{index = \"i{at}\", start = 0, end = 1000, step = 1}} () {{\n%v{at} = add %one, %one : f32");
    }
    lines += "store %y, %zero, %one\n";
    (0..depth).for_each(|_| lines += "yield\n}\n");
    kernel(VECTOR, &lines)
}

/// A remainder loop with a chain of scalars, and with branches that also depend on what is the same in all iterations.
pub(crate) fn conditions_of_a_remainder_loop(count: usize) -> String {
    let mut lines = format!("{LANES}%v = cast %lanes : tile<f32, [64]>\n%odd = lt %m, %n : bool\n");
    lines += "%from = const {value = 0} : i64\n%by = const {value = 1} : i64\nfor %from, %n, %by {remainder = true} (%s0: i64) {\n";
    for at in 0..count / 6 {
        let next = at + 1;
        let _ = writeln!(
            lines,
            "%s{next} = add %s{at}, %m : i64\n%a{at} = mul %s{next}, %s{next} : i64\n%b{at} = lt %a{at}, %n : bool\n%c{at} = and %b{at}, %odd : bool\n\
             if %c{at} () {{\nstore %y, %lanes, %v {{mask = %inside}}\nyield\n}} () {{\nyield\n}}"
        );
    }
    lines += "yield\n}\n";
    kernel(VECTOR, &lines)
}

/// A flattened tile of 32-bit sums, `length` deep, which ends with a mask: its slices end where the mask ends.
pub(crate) fn chain_of_narrow_sums(length: usize) -> String {
    let mut lines = String::from(
        "%i = arange {start = 0, end = 1024} : tile<i64, [1024]>\n%p0 = cast %i : tile<i32, [1024]>\n%k = cast %n : i32\n\
         %ks = broadcast %k : tile<i32, [1024]>\n",
    );
    for at in 0..length {
        let _ = writeln!(lines, "%p{} = add %p{at}, %ks : tile<i32, [1024]>", at + 1);
    }
    let _ = writeln!(
        lines,
        "%inside = lt %p{length}, %ks : tile<bool, [1024]>\n%w = broadcast %m : tile<i64, [1024]>\n%row = div %i, %w : tile<i64, [1024]>\n\
         %v = load %x, %row {{mask = %inside}} : tile<f32, [1024]>\nstore %y, %i, %v {{mask = %inside}}"
    );
    kernel(VECTOR, &lines)
}

/// Tiles that a mask of the program's own fills with a number: chains of 40 ops, each of which is reduced and used in the next one.
pub(crate) fn chains_of_masked_elements(length: usize) -> String {
    let mut lines = String::from(
        "%i = arange {start = 0, end = 1024} : tile<i64, [1024]>\n%p = program_id : i64\n%ps = broadcast %p : tile<i64, [1024]>\n\
         %own = lt %i, %ps : tile<bool, [1024]>\n%b = load %x, %i {mask = %own} : tile<i8, [1024]>\n%v0 = cast %b : tile<i32, [1024]>\n",
    );
    for at in 0..length {
        let next = at + 1;
        let _ = writeln!(lines, "%v{next} = {} %v{at}, %v{at} : tile<i32, [1024]>", ["add", "mul", "xor"][at % 3]);
        if at % 40 == 39 {
            let _ = writeln!(
                lines,
                "%t{at} = reduce %v{next} {{axis = 0}} (%a{at}: i32, %b{at}: i32) {{\n%c{at} = max %a{at}, %b{at} : i32\nyield %c{at}\n}} : i32\n\
                 store %y, %p, %t{at}"
            );
        }
    }
    let _ = writeln!(lines, "store %z, %i, %v{length} {{mask = %own}}");
    kernel("%x: ptr<i8>, %y: ptr_mut<i32>, %z: ptr_mut<i32>", &lines)
}
