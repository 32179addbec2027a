//! Random kernels over matrices: strides that are arguments or numbers, rows and columns that begin anywhere, masks of both. Most of a kernel is
//! as users write it; now and then a choice is odd.

use std::fmt::Write;

use kernel_lang::ir::Function;

use super::{Buffer, Random, samples};

/// A kernel on tiles of that shape. Its grid has two programs a row of tiles.
pub(crate) fn text(random: &mut Random, [rows, columns]: [i64; 2]) -> String {
    let is_loop = random.below(3) == 0;
    let mut of = |list: &[&str]| list[if random.below(12) > 0 { 0 } else { random.below(list.len()) }].to_string();
    let dtype = of(&["f32", "bf16", "u8", "i64"]);
    let [tile, indices, bools] = [&*dtype, "i64", "bool"].map(|elem| format!("tile<{elem}, [{rows}, {columns}]>"));
    let [turned, turned_indices, turned_bools] = [&*dtype, "i64", "bool"].map(|elem| format!("tile<{elem}, [{columns}, {rows}]>"));
    let mut text = format!(
        "kernel @matrix(%x: ptr<{dtype}>, %y: ptr_mut<{dtype}>, %flags: ptr<bool>, %s: i64, %t: i64, %m: i64, %n: i64, %o: i64){} {{\n\
         %pid = program_id : i64\n%two = const {{value = 2}} : i64\n%one = const {{value = 1}} : i64\n\
         %r_program = div %pid, %two : i64\n%c_program = rem %pid, %two : i64\n",
        of(&["", " unchecked"])
    );
    let mut line = |op: String| writeln!(text, "{op}").expect("a string takes everything");
    if is_loop {
        let step = of(&[&rows.to_string(), "3"]);
        line(format!("%from = const {{value = {}}} : i64\n%to = const {{value = 21}} : i64", of(&["0", "-4", "2"])));
        line(format!("%by = const {{value = {step}}} : i64\nfor %from, %to, %by (%i: i64) {{"));
    }
    for (k, extent, new_axis) in [("r", rows, " {axis = 1}"), ("c", columns, "")] {
        let is_row = k == "r";
        let shape = if is_row { format!("[{extent}, 1]") } else { format!("[1, {extent}]") };
        let (line_indices, line_bools) = (format!("tile<i64, {shape}>"), format!("tile<bool, {shape}>"));
        // Where they begin, and by how much they grow.
        line(format!("%{k}_by = const {{value = {}}} : i64", of(&[&extent.to_string(), "3", "0", "-5", "4611686018427387904"])));
        line(format!("%{k}_k = const {{value = {}}} : i64", of(&["0", "1", "-2", "16"])));
        match is_row && is_loop {
            true => line("%r_p = add %r_program, %i : i64".to_string()),
            false => line(format!("%{k}_p = mul %{k}_program, %{k}_by : i64")),
        }
        line(format!("%{k}_s = add %{k}_p, %{} : i64", of(&[&format!("{k}_k"), "o"])));
        line(format!("%{k}_l = arange {{start = 0, end = {extent}}} : tile<i64, [{extent}]>"));
        line(format!("%{k}_w = broadcast %{k}_s : tile<i64, [{extent}]>\n%{k}_i = add %{k}_w, %{k}_l : tile<i64, [{extent}]>"));
        line(format!("%{k} = expand_dims %{k}_i{new_axis} : {line_indices}"));
        line(format!("%{k}_number = const {{value = {}}} : i64", of(&["0", "-1", "7", "16", "1099511627775", "1099511627776"])));
        let stride = if is_row { of(&["s", "t", "r_number", "one"]) } else { of(&["one", "t", "c_number", "s"]) };
        let sign = of(&["mul %one,", "mul %r_by,", "neg"]);
        line(format!("%{k}_n = {sign} %{stride} : i64\n%{k}_b = broadcast %{k}_n : {line_indices}"));
        line(format!("%{k}_m = mul %{k}, %{k}_b : {line_indices}\n%{k}_o = broadcast %{k}_m : {indices}"));
        // Which of them count.
        let limit = if is_row { of(&["m", "n", "t"]) } else { of(&["n", "m", "t"]) };
        line(format!("%{k}_h = broadcast %{limit} : {line_indices}\n%{k}_z = broadcast %{} : {line_indices}", of(&["r_number", "o"])));
        line(format!("%{k}_below = {} : {line_bools}", of(&["lt %K, %K_h", "gt %K_h, %K", "le %K, %K_h", "ge %K, %K_h"]).replace('K', k)));
        line(format!("%{k}_above = ge %{k}, %{k}_z : {line_bools}\n%{k}_both = and %{k}_below, %{k}_above : {line_bools}"));
        line(format!("%{k}_mask = broadcast %{k}_{} : {bools}", of(&["below", "both", "above"])));
    }
    line(format!("%sum = add %r_o, %c_o : {indices}\n%far = broadcast %o : {indices}\n%moved = add %sum, %far : {indices}"));
    line(format!("%zero = const {{value = 0}} : {indices}\n%at = add %{}, %zero : {indices}", of(&["sum", "moved"])));
    line(format!("%both = and %r_mask, %c_mask : {bools}\n%flag = load %flags, %at : {bools}\n%all = and %both, %flag : {bools}"));
    line(format!("%fill = const {{value = 1}} : {tile}"));
    let options = ["{mask = %both}", "", "{mask = %both, other = %fill}", "{mask = %r_mask}", "{mask = %all, other = %fill}"];
    line(format!("%v = load %x, %at {} : {tile}\n%w = load %y, %at {} : {tile}\n%vw = add %v, %w : {tile}", of(&options), of(&options)));
    line(format!("store %y, %{}, %vw {}", of(&["at", "sum"]), of(&options).replace(", other = %fill", "")));
    if of(&["", "turned"]) == "turned" {
        line(format!(
            "%turned = permute %vw {{order = [1, 0]}} : {turned}\n%turned_at = permute %at {{order = [1, 0]}} : {turned_indices}"
        ));
        line(format!("%turned_mask = permute %both {{order = [1, 0]}} : {turned_bools}"));
        line(format!("store %y, %turned_at, %turned {}", of(&["", "{mask = %turned_mask}"])));
    }
    line(format!("{}return\n}}", if is_loop { "yield\n}\n" } else { "" }));
    text
}

/// Extents and strides of matrices that fit their memory; and now and then of ones that do not, or of no sense at all.
pub(crate) fn arguments(func: &Function, random: &mut Random, [rows, columns]: [i64; 2]) -> (Vec<Option<Buffer>>, Vec<u64>) {
    let mut of = |list: &[i64]| list[random.below(list.len())];
    let n = of(&[2 * columns, 2 * columns, 2 * columns - 1, columns + 4, 3, 0]);
    let m = of(&[2 * rows, 2 * rows, 2 * rows - 1, 1, 0]);
    let stride = n + of(&[0, 0, 0, 16, 1]);
    let mut scalars = [stride, of(&[stride, 1, 0, 2]), m, n, of(&[0, 0, 0, 16, 1])];
    if of(&[0, 0, 0, 1]) == 1 {
        let near = |ends: i64| [ends.wrapping_sub(rows), ends.wrapping_add(stride), ends];
        let odd = [[0, -1, -stride], near(1 << 31), near(-1 << 31), near(1 << 40), near(1 << 62), near(i64::MAX), near(i64::MIN)].concat();
        for _ in 0..2 {
            scalars[of(&[0, 1, 2, 3, 4]) as usize] = of(&odd);
        }
    }
    let length = m * stride + of(&[0, 0, 64, -1, -stride]);
    let tensors = func.params.iter().map(|param| {
        let ty = func.ty(param.value);
        ty.is_pointer().then(|| {
            let samples = samples(ty.dtype(), 10);
            Buffer::new(ty.dtype(), &(0..length).map(|_| samples[random.below(samples.len())]).collect::<Vec<_>>())
        })
    });
    (tensors.collect(), scalars.map(|scalar| scalar as u64).to_vec())
}

/// Rows that a mask counts from `%start` on, in memory that does not care where they are counted from.
pub(crate) const COUNTED: &str = "kernel @counted(%x: ptr<u8>, %y: ptr_mut<u8>, %start: i64, %first: i64, %end: i64, %s: i64) {
    %l = arange {start = 0, end = 4} : tile<i64, [4]>
    %c = arange {start = 0, end = 16} : tile<i64, [16]>
    %w = broadcast %start : tile<i64, [4]>
    %r = add %w, %l : tile<i64, [4]>
    %f = broadcast %first : tile<i64, [4]>
    %e = broadcast %end : tile<i64, [4]>
    %a = ge %r, %f : tile<bool, [4]>
    %b = lt %r, %e : tile<bool, [4]>
    %ab = and %a, %b : tile<bool, [4]>
    %m1 = expand_dims %ab {axis = 1} : tile<bool, [4, 1]>
    %mask = broadcast %m1 : tile<bool, [4, 16]>
    %sw = broadcast %s : tile<i64, [4]>
    %ls = mul %l, %sw : tile<i64, [4]>
    %l1 = expand_dims %ls {axis = 1} : tile<i64, [4, 1]>
    %c1 = expand_dims %c : tile<i64, [1, 16]>
    %lw = broadcast %l1 : tile<i64, [4, 16]>
    %cw = broadcast %c1 : tile<i64, [4, 16]>
    %at = add %lw, %cw : tile<i64, [4, 16]>
    %v = load %x, %at {mask = %mask} : tile<u8, [4, 16]>
    store %y, %at, %v {mask = %mask}
    return
}";
