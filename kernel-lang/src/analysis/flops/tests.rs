//! Counts beside an interpreter that executes each program, one iteration after the other.

use std::collections::HashMap;
use std::fmt::Write as _;

use super::*;
use crate::random::Random;

fn parsed(params: &str, lines: &str) -> Function {
    let text = format!("kernel @k({params}) {{\n{lines}\nreturn\n}}\n");
    crate::ir::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn counted(params: &str, lines: &str, numbers: &[Option<i64>]) -> (i64, bool) {
    let Flops { count, is_exact } = count(&parsed(params, lines), numbers, &[1, 1, 1]);
    (count, is_exact)
}

const TILE: &str = "%at = arange {start = 0, end = 8} : tile<i64, [8]>
%x = cast %at : tile<f32, [8]>
";

#[test]
fn each_op_has_its_number_of_operations() {
    let uncounted = ["neg", "abs", "floor", "ceil", "round", "rint", "trunc", "min", "max", "copysign"];
    for op in UnaryOp::ALL.iter().filter(|op| op.domain().contains(crate::dtype::Dtype::F32)) {
        let expected = if uncounted.contains(&op.name()) { 0 } else { 8 };
        assert_eq!(counted("", &format!("{TILE}%y = {} %x : tile<f32, [8]>", op.name()), &[]), (expected, true), "{op:?}");
    }
    for op in BinaryOp::ALL {
        let on_ints = op.domain().contains(crate::dtype::Dtype::I64);
        if on_ints {
            assert_eq!(counted("", &format!("{TILE}%y = {} %at, %at : tile<i64, [8]>", op.name()), &[]), (0, true), "{op:?}");
        }
        if op.domain().contains(crate::dtype::Dtype::F32) {
            let expected = if uncounted.contains(&op.name()) { 0 } else { 8 };
            assert_eq!(counted("", &format!("{TILE}%y = {} %x, %x : tile<f32, [8]>", op.name()), &[]), (expected, true), "{op:?}");
        }
    }
    let counts = |lines: &str| counted("%p: ptr_mut<f32>, %q: ptr_mut<i32>", &format!("{TILE}{lines}"), &[None, None]);
    assert_eq!(counts("%y = fma %x, %x, %x : tile<f32, [8]>"), (16, true));
    assert_eq!(counts("%a, %b = reduce_pio2 %x : tile<f32, [8]>, tile<i32, [8]>"), (8, true));
    assert_eq!(counts("%y = lt %x, %x : tile<bool, [8]>\n%z = select %y, %x, %x : tile<f32, [8]>"), (0, true));
    assert_eq!(counts("%y = atomic %p, %at, %x {op = \"add\"} : tile<f32, [8]>"), (8, true));
    assert_eq!(counts("%y = atomic %p, %at, %x {op = \"max\"} : tile<f32, [8]>"), (0, true));
    assert_eq!(counts("%i = cast %at : tile<i32, [8]>\n%y = atomic %q, %at, %i {op = \"add\"} : tile<i32, [8]>"), (0, true));
}

#[test]
fn constants_are_computed_before_the_launch() {
    let lines =
        "%a = const {value = 2.0} : f32\n%b = sqrt %a : f32\n%c = div %a, %b : f32\n%d = fma %a, %b, %c : f32\n%e = mul %d, %f : f32";
    assert_eq!(counted("%f: f32", lines, &[None]), (1, true));
}

#[test]
fn reductions_and_scans_combine_all_elements_but_one() {
    let matrix = "%at = arange {start = 0, end = 32} : tile<i64, [32]>
%i = reshape %at : tile<i64, [4, 8]>
%x = cast %i : tile<f32, [4, 8]>
";
    let combine = "(%a: f32, %b: f32) {\n%c = add %a, %b : f32\n%d = mul %c, %b : f32\nyield %d\n}";
    let counts = |lines: &str| counted("", &format!("{matrix}{lines}"), &[]);
    assert_eq!(counts(&format!("%y = reduce %x {{axis = 1}} {combine} : tile<f32, [4]>")), (2 * 4 * 7, true));
    assert_eq!(counts(&format!("%y = reduce %x {{axis = 0}} {combine} : tile<f32, [8]>")), (2 * 8 * 3, true));
    assert_eq!(counts(&format!("%y = scan %x {{axis = 1}} {combine} : tile<f32, [4, 8]>")), (2 * 4 * 7, true));
    let largest = "(%a: f32, %b: f32) {\n%c = max %a, %b : f32\nyield %c\n}";
    assert_eq!(counts(&format!("%y = reduce %x {{axis = 1}} {largest} : tile<f32, [4]>")), (0, true));
}

#[test]
fn loops_over_data_are_lower_bounds() {
    let params = "%p: ptr<i64>, %n: i64, %m: i64";
    let numbers = [Some(100), Some(5), None];
    let counts = |lines: &str| {
        let start = format!("{TILE}%zero = const {{value = 0}} : i64\n%one = const {{value = 1}} : i64\n%v = load %p, %zero : i64\n");
        counted(params, &format!("{start}{lines}"), &numbers)
    };
    let body = "(%i: i64) {\n%y = mul %x, %x : tile<f32, [8]>\nyield\n}";
    assert_eq!(counts(&format!("for %zero, %n, %one {body}")), (40, true));
    assert_eq!(counts(&format!("%len = length %p : i64\nfor %zero, %len, %one {body}")), (800, true));
    assert_eq!(counts(&format!("for %zero, %v, %one {body}")), (0, false), "the end is loaded");
    assert_eq!(counts(&format!("for %zero, %m, %one {body}")), (0, false), "the parameter is not known");
    assert_eq!(counts("for %zero, %v, %one (%i: i64) {\n%y = mul %i, %i : i64\nyield\n}"), (0, true), "it does nothing that counts");
    assert_eq!(counts(&format!("for %zero, %n, %zero {body}")), (0, false), "a step of 0");
    let branch =
        |cond: &str, arms: [&str; 2]| counts(&format!("{cond} : bool\nif %c () {{\n{}yield\n}} () {{\n{}yield\n}}", arms[0], arms[1]));
    let (one, two) = ("%a = mul %x, %x : tile<f32, [8]>\n", "%b = mul %x, %x : tile<f32, [8]>\n%d = mul %x, %x : tile<f32, [8]>\n");
    assert_eq!(branch("%c = gt %n, %one", [one, two]), (8, true));
    assert_eq!(branch("%c = lt %n, %one", [one, two]), (16, true));
    assert_eq!(branch("%c = gt %v, %one", [one, two]), (8, false));
    assert_eq!(branch("%c = gt %v, %one", [two, one]), (8, false));
    assert_eq!(branch("%c = gt %v, %one", [one, "%b = sin %x : tile<f32, [8]>\n"]), (8, true));
    let test = "%f = cast %v : f32\n%g = sin %f : f32\n%c = gt %g, %f : bool\ncondition %c\n";
    assert_eq!(counts(&format!("while () {{\n{test}}} () {{\n{two}yield\n}}")), (1, false));
}

#[test]
fn a_while_may_count() {
    let counts = |cond: &str, values: &str, next: &str| {
        let lines = format!(
            "{TILE}%zero = const {{value = 0}} : i64\n%two = const {{value = 2}} : i64\n%v = load %p, %zero : i64
%r, %s = while %zero, %two (%i: i64, %j: i64) {{\n%c = {cond} : bool\ncondition %c, {values}\n}} (%a: i64, %b: i64) {{
%y = mul %x, %x : tile<f32, [8]>\n%next = {next} : i64\nyield %next, %b\n}} : i64, i64"
        );
        counted("%p: ptr<i64>, %n: i64", &lines, &[Some(100), Some(7)])
    };
    assert_eq!(counts("lt %i, %n", "%i, %j", "add %a, %two"), (4 * 8, true));
    assert_eq!(counts("lt %i, %n", "%i, %j", "add %two, %a"), (4 * 8, true));
    assert_eq!(counts("lt %i, %n", "%j, %i", "add %b, %two"), (4 * 8, true), "the body takes the values in another order");
    assert_eq!(counts("lt %i, %j", "%i, %j", "add %a, %two"), (0, false), "the limit may change");
    assert_eq!(counts("lt %i, %v", "%i, %j", "add %a, %two"), (0, false), "the limit is loaded");
    assert_eq!(counts("le %i, %n", "%i, %j", "add %a, %two"), (0, false), "another comparison");
    assert_eq!(counts("lt %i, %n", "%i, %j", "mul %a, %two"), (0, false), "it does not count");
    assert_eq!(counts("lt %i, %n", "%i, %j", "add %b, %two"), (0, false), "it adds to something else");
    assert_eq!(counts("lt %i, %n", "%i, %j", "add %a, %v"), (0, false), "the step is loaded");
}

#[test]
fn a_matrix_product_has_two_operations_for_each_term() {
    let params = "%a: tile<f16, [16, 32]>, %b: tile<f16, [32, 8]>, %c: tile<f32, [16, 8]>";
    assert_eq!(counted(params, "%d = dot %a, %b, %c : tile<f32, [16, 8]>", &[None, None, None]), (2 * 16 * 32 * 8, true));
}

#[test]
fn programs_share_iterations() {
    let counts = |grid: [i64; 3], lines: &str| {
        let start = format!(
            "{TILE}%one = const {{value = 1}} : i64\n%id = program_id : i64\n%all = num_programs : i64\n%v = load %p, %one : i64\n"
        );
        let Flops { count, is_exact } = count(&parsed("%p: ptr<i64>, %n: i64", &format!("{start}{lines}")), &[None, Some(9)], &grid);
        (count, is_exact)
    };
    let shared = "for %id, %n, %all (%i: i64) {\n%y = mul %x, %x : tile<f32, [8]>\nyield\n}\n";
    assert_eq!(counts([4, 3, 1], shared), (9 * 8 * 3, true));
    let arms = format!("%c = lt %v, %n : bool\nif %c () {{\n{shared}yield\n}} () {{\nyield\n}}");
    assert_eq!(counts([4, 1, 1], &arms), (0, false), "the programs may take different arms");
    let from_id = "%end = add %n, %id : i64\nfor %id, %end, %one (%i: i64) {\n%y = mul %x, %x : tile<f32, [8]>\nyield\n}";
    assert_eq!(counts([1, 3, 1], from_id), (9 * 8 * 3, true), "the only program is the first one");
    assert_eq!(counts([2, 1, 1], from_id), (0, false));
}

/// The number of operations that all programs do, one after the other.
struct Interpreter<'a> {
    func: &'a Function,
    numbers: &'a [i64],
    grid: [i64; 3],
    id: [i64; 3],
    data: Random,
    done: i64,
}

impl Interpreter<'_> {
    fn run(&mut self, region: Region, values: &mut HashMap<Value, i64>) {
        let func = self.func;
        for inst in &func.region(region).insts {
            let data = func.inst(*inst);
            let of = |values: &HashMap<Value, i64>, value: Value| values.get(&value).copied().unwrap_or(0);
            let result = match &data.op {
                Op::For { lower, upper, step, body, .. } => {
                    let [mut at, end, step] = [lower, upper, step].map(|value| of(values, *value));
                    while step > 0 && at < end {
                        values.insert(func.region(*body).params[0], at);
                        self.run(*body, values);
                        at += step;
                    }
                    continue;
                }
                Op::If { cond, then_region, else_region, .. } => {
                    let arm = if of(values, *cond) != 0 { *then_region } else { *else_region };
                    self.run(arm, values);
                    for (result, value) in data.results.iter().zip(func.yielded(arm)) {
                        values.insert(*result, of(values, *value));
                    }
                    continue;
                }
                Op::Const { value: ConstExpr::Int(value) } => *value as i64,
                Op::ProgramId { axis } => self.id[*axis as usize],
                Op::NumPrograms { axis } => self.grid[*axis as usize],
                Op::Load { .. } => self.data.below(9) as i64,
                Op::Binary { op, lhs, rhs } if func.ty(data.results[0]).dtype().is_int() => {
                    i64::binary(*op, &of(values, *lhs), &of(values, *rhs)).unwrap_or(0)
                }
                Op::Compare { op, lhs, rhs } => i64::compare(*op, &of(values, *lhs), &of(values, *rhs)).unwrap_or(false).into(),
                Op::Binary { .. } | Op::Unary { .. } => {
                    self.done += func.ty(data.results[0]).numel() as i64;
                    continue;
                }
                _ => continue,
            };
            values.insert(data.results[0], result);
        }
    }
}

fn interpreted(func: &Function, numbers: &[i64], grid: [i64; 3]) -> i64 {
    let mut cx = Interpreter { func, numbers, grid, id: [0; 3], data: Random { state: 5 }, done: 0 };
    for id in 0..grid.iter().product() {
        cx.id = [id % grid[0], id / grid[0] % grid[1], id / grid[0] / grid[1]];
        let params = func.params.iter().map(|param| param.value);
        let mut values: HashMap<Value, i64> = params.zip(cx.numbers.iter().copied()).collect();
        cx.run(func.body, &mut values);
    }
    cx.done
}

/// The writer of random kernels.
struct Writer {
    random: Random,
    /// The integers that the next op may use.
    scalars: Vec<String>,
    names: usize,
}

impl Writer {
    fn name(&mut self) -> String {
        self.names += 1;
        format!("%r{}", self.names)
    }

    fn scalar(&mut self) -> String {
        self.scalars[self.random.below(self.scalars.len())].clone()
    }

    /// The ops of a region, without its end.
    fn ops(&mut self, depth: usize) -> String {
        let (mut text, outer) = (String::new(), self.scalars.len());
        for _ in 0..=self.random.below(4) {
            let (a, b, new) = (self.scalar(), self.scalar(), self.name());
            match self.random.below(if depth == 0 { 4 } else { 9 }) {
                0 => drop(writeln!(text, "{new} = mul %x, %x : tile<f32, [8]>")),
                1 => drop(writeln!(text, "{new} = sigmoid %x : tile<f32, [8]>")),
                2 => {
                    let op = self.random.pick(&["add", "sub", "mul", "min", "max", "div", "rem"]);
                    let _ = writeln!(text, "{new} = {op} {a}, {b} : i64");
                    self.scalars.push(new);
                }
                3 => {
                    let _ = writeln!(text, "{new} = load %p, %zero : i64");
                    self.scalars.push(new);
                }
                4 => {
                    // The programs share the iterations.
                    let (axis, block) = (self.random.below(3), self.random.pick(&["%one", "%three"]));
                    // With another block in the step, they leave iterations out, or do some twice.
                    let of_step = if self.random.below(4) == 0 { "%three" } else { block };
                    let [id, all, first, step] = [(); 4].map(|()| self.name());
                    let _ = writeln!(text, "{id} = program_id {{axis = {axis}}} : i64\n{all} = num_programs {{axis = {axis}}} : i64");
                    let _ = writeln!(text, "{first} = mul {id}, {block} : i64\n{step} = mul {all}, {of_step} : i64");
                    let body = self.body(new.clone(), depth);
                    let _ = writeln!(text, "for {first}, {b}, {step} ({new}: i64) {{\n{body}yield\n}}");
                }
                5 | 6 => {
                    let step = self.random.pick(&["%one", "%three", "%n"]);
                    let body = self.body(new.clone(), depth);
                    let _ = writeln!(text, "for {a}, {b}, {step} ({new}: i64) {{\n{body}yield\n}}");
                }
                _ => {
                    let (cond, then, otherwise) = (self.name(), self.ops(depth - 1), self.ops(depth - 1));
                    let _ = writeln!(
                        text,
                        "{cond} = lt {a}, {b} : bool\n{new} = if {cond} () {{\n{then}yield {a}\n}} () {{\n{otherwise}yield {b}\n}} : i64"
                    );
                    self.scalars.push(new);
                }
            }
        }
        self.scalars.truncate(outer);
        text
    }

    /// The ops of the body of a loop with this index.
    fn body(&mut self, index: String, depth: usize) -> String {
        self.scalars.push(index);
        let body = self.ops(depth - 1);
        self.scalars.pop();
        body
    }
}

#[test]
fn counts_are_those_of_an_interpreter() {
    let scalars = ["%zero", "%one", "%three", "%n", "%m"].map(str::to_owned).to_vec();
    let mut writer = Writer { random: Random { state: 3 }, scalars, names: 0 };
    let constants: String =
        [("zero", 0), ("one", 1), ("three", 3)].map(|(name, value)| format!("%{name} = const {{value = {value}}} : i64\n")).concat();
    let (mut exact, mut positive) = (0, 0);
    for number in 0..2000 {
        writer.names = 0;
        let body = writer.ops(3);
        let func = parsed("%n: i64, %m: i64, %p: ptr<i64>", &format!("{TILE}{constants}{body}"));
        let numbers = [writer.random.below(9) as i64, writer.random.below(9) as i64, 1];
        let grid = [(); 3].map(|()| writer.random.pick(&[1, 1, 2, 3]));
        let Flops { count, is_exact } = count(&func, &numbers.map(Some), &grid);
        let done = interpreted(&func, &numbers, grid);
        assert!(
            if is_exact { count == done } else { count <= done },
            "kernel {number}, {numbers:?} on {grid:?}: {count} is not {done}\n{func}"
        );
        exact += usize::from(is_exact);
        positive += usize::from(is_exact && count > 0 && func.to_string().contains("for "));
    }
    assert!(exact > 800 && positive > 200, "only {exact} counts are exact, of which {positive} are of kernels with loops");
}
