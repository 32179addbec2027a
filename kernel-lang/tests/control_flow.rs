//! Control flow means what it means in Rust: kernels and host functions of the same text, and random kernels beside an interpreter
//! that knows nothing of the compiler.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::{Add, AddAssign};

use kernel_cpu::{Conflicts, Program, Scratch};
use kernel_lang::Bindings;

const LENGTH: usize = 64;

fn compile(source: &str) -> Program {
    let func =
        kernel_frontend::lower_source(source, "test.rs").unwrap_or_else(|diagnostics| panic!("{}\n{source}", diagnostics.render(&[])));
    kernel_cpu::compile(&func, &Bindings::new()).unwrap_or_else(|diagnostics| panic!("{}\n{source}", diagnostics.render(&[])))
}

/// Runs a kernel on the input `x`, and returns the output `y`.
fn run(program: &Program, x: &[i64], n: i64, m: i64) -> Vec<i64> {
    let mut y = vec![-1i64; LENGTH];
    let args = [x.as_ptr() as u64, x.len() as u64, y.as_mut_ptr() as u64, y.len() as u64, n as u64, m as u64];
    // SAFETY: the addresses are those of `x` and `y`, which outlive the call.
    let outcome = unsafe { program.run(&args, [1, 1, 1], [0, 0, 0], &mut Scratch::new(), false, &Conflicts::none()) };
    assert!(outcome.is_ok(), "an unchecked run reports nothing");
    y
}

thread_local! {
    static MEMORY: RefCell<[Vec<i64>; 2]> = const { RefCell::new([Vec::new(), Vec::new()]) };
}

/// A pointer of the host's version.
#[derive(Clone, Copy)]
struct Pointer(usize, i64);

impl Add<i64> for Pointer {
    type Output = Pointer;
    fn add(self, offset: i64) -> Pointer {
        Pointer(self.0, self.1 + offset)
    }
}

impl AddAssign<i64> for Pointer {
    fn add_assign(&mut self, offset: i64) {
        self.1 += offset;
    }
}

fn load(pointer: Pointer) -> i64 {
    MEMORY.with_borrow(|memory| usize::try_from(pointer.1).ok().and_then(|index| memory[pointer.0].get(index).copied()).unwrap_or(0))
}

fn store(pointer: Pointer, value: i64) {
    MEMORY.with_borrow_mut(|memory| {
        if let Some(element) = usize::try_from(pointer.1).ok().and_then(|index| memory[pointer.0].get_mut(index)) {
            *element = value;
        }
    });
}

fn range(start: i64, end: i64, step: i64) -> impl Iterator<Item = i64> {
    // Nothing runs if the step is not positive.
    let end = if step > 0 { end } else { start };
    (start..end).step_by(usize::try_from(step).unwrap_or(0).max(1))
}

/// The same text as a kernel and as a function of the host.
macro_rules! same {
    ($($name:ident |$x:ident, $y:ident, $n:ident, $m:ident| $body:block)*) => {$(
        #[test]
        #[allow(unused_assignments, unused_mut, unreachable_code, unused_variables, clippy::needless_return, clippy::never_loop, reason = "kernels exercise odd text")]
        fn $name() {
            let source = format!(
                "#[kernel]\nfn {}({}: Ptr<i64>, {}: PtrMut<i64>, {}: i64, {}: i64) {}",
                stringify!($name), stringify!($x), stringify!($y), stringify!($n), stringify!($m), stringify!($body)
            );
            let program = compile(&source);
            let input: Vec<i64> = (0..LENGTH as i64).map(|index| (index * 37 + 11) % 29 - 9).collect();
            for n in -1..12 {
                for m in -1..7 {
                    MEMORY.set([input.clone(), vec![-1; LENGTH]]);
                    let host = |$x: Pointer, $y: Pointer, $n: i64, $m: i64| $body;
                    host(Pointer(0, 0), Pointer(1, 0), n, m);
                    let wanted = MEMORY.with_borrow(|memory| memory[1].clone());
                    assert_eq!(run(&program, &input, n, m), wanted, "n = {n}, m = {m}\n{source}");
                }
            }
        }
    )*};
}

same! {
    returns_early |x, y, n, m| {
        if n < 3 {
            return;
        }
        store(y, n);
        if m > 2 {
            store(y + 1, 1);
            if n > 5 {
                return;
            }
            store(y + 2, 2);
        } else if m == 1 {
            return;
        }
        store(y + 3, m);
    }
    breaks_and_continues |x, y, n, m| {
        let mut sum = 0;
        let mut last = -5;
        for i in 0..n {
            let v = load(x + i);
            if v < 0 {
                continue;
            }
            if v > 15 + m {
                break;
            }
            sum += v;
            last = i;
        }
        store(y, sum);
        store(y + 1, last);
    }
    returns_from_nested_loops |x, y, n, m| {
        let mut found = 0;
        for i in 0..n {
            let mut j = 0;
            while j < m {
                found += 1;
                if load(x + i) == load(x + j) && i != j {
                    store(y, i);
                    store(y + 1, j);
                    return;
                }
                if found == 20 {
                    break;
                }
                j += 1;
            }
            if found == 20 {
                continue;
            }
            store(y + 2 + i, found);
        }
        store(y + 40, found);
    }
    binds_or_leaves |x, y, n, m| {
        let a = if n > 4 { n * 2 } else { return };
        store(y, a);
        for i in 0..m {
            let b = if i == 3 { break } else { let c = i * a; c + 1 };
            let d = if b > 30 { continue } else { b };
            store(y + 1 + i, d);
        }
        store(y + 20, a);
    }
    carries_pointers |x, y, n, m| {
        let mut p = x;
        let mut q = y + m;
        let mut total = 0;
        for i in range(0, n, 2) {
            total += load(p);
            p += 3;
            if i > 4 {
                q += 1;
            }
            store(q, total);
        }
        store(q + 1, load(p));
    }
    steps_at_run_time |x, y, n, m| {
        let mut count = 0;
        for i in range(0, n, m) {
            store(y + i, count);
            count += 1;
        }
        for i in range(1, n, m - 2) {
            if i > 7 {
                break;
            }
            store(y + 20 + i, count);
            count += 2;
        }
        store(y + 40, count);
    }
    swaps_and_shadows |x, y, n, m| {
        let (mut a, mut b) = (n, m);
        let mut k = 0;
        while k < 10 && a > b {
            (a, b) = (b + 3, a - 1);
            let k2 = {
                let k = k * 2;
                k + 1
            };
            k = if k2 > 7 { k + 2 } else { k + 1 };
            store(y + k, a * 100 + b);
        }
        let a = if b > a { b } else { a };
        store(y + 30, a);
        store(y + 31, b);
    }
    drops_what_never_runs |x, y, n, m| {
        for i in 0..n {
            store(y + i, m);
            continue;
            store(y + i, 99);
        }
        for i in 0..n {
            store(y + 29, i);
            break;
        }
        store(y + 30, 1);
        return;
        store(y + 30, 2);
    }
    divides_as_rust_does |x, y, n, m| {
        let d = if m == 0 { 4 } else { m };
        store(y, n / d);
        store(y + 1, n % d);
        store(y + 2, -n / d * 7 % 5);
        store(y + 3, (n << 3) >> 1);
        store(y + 4, (n ^ m) & 6 | 1);
    }
}

// Random kernels.

#[derive(Debug)]
enum Stmt {
    Set(usize, Expr),
    Trace(Expr),
    If(Expr, Vec<Stmt>, Vec<Stmt>),
    For(usize, Expr, Vec<Stmt>),
    While(usize, Expr, Vec<Stmt>),
    Leave(&'static str),
}

#[derive(Debug)]
enum Expr {
    Variable(String),
    Literal(i64),
    Binary(&'static str, Box<Expr>, Box<Expr>),
}

/// How a statement ends.
#[derive(PartialEq)]
enum Flow {
    Next,
    Leave(&'static str),
}

struct Random(u64);

impl Random {
    fn below(&mut self, below: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % below
    }

    fn stmts(&mut self, depth: u32, loops: u32, names: &mut usize) -> Vec<Stmt> {
        (0..1 + self.below(4)).map(|_| self.stmt(depth, loops, names)).collect()
    }

    fn stmt(&mut self, depth: u32, loops: u32, names: &mut usize) -> Stmt {
        match self.below(if depth == 0 { 5 } else { 10 }) {
            0 | 1 => Stmt::Set(self.below(3) as usize, self.expr(2)),
            2 | 3 => Stmt::Trace(self.expr(1)),
            4 if loops > 0 => Stmt::Leave(["break", "continue", "return"][self.below(3) as usize]),
            4 => Stmt::Trace(self.expr(2)),
            5..=7 => {
                let cond = self.expr(1);
                let mut then_stmts = self.stmts(depth - 1, loops, names);
                let else_stmts = if self.below(2) == 0 { self.stmts(depth - 1, loops, names) } else { Vec::new() };
                // Leaving under a condition is what is to be tested.
                match self.below(4) {
                    0 => then_stmts.push(Stmt::Leave("return")),
                    1 if loops > 0 => then_stmts.push(Stmt::Leave("break")),
                    2 if loops > 0 => then_stmts.push(Stmt::Leave("continue")),
                    _ => {}
                }
                Stmt::If(cond, then_stmts, else_stmts)
            }
            kind => {
                *names += 1;
                let (name, bound) = (*names, self.expr(1));
                let body = self.stmts(depth - 1, loops + 1, names);
                if kind == 8 { Stmt::For(name, bound, body) } else { Stmt::While(name, bound, body) }
            }
        }
    }

    fn expr(&mut self, depth: u32) -> Expr {
        if depth == 0 || self.below(3) == 0 {
            return match self.below(3) {
                0 => Expr::Literal(self.below(7) as i64),
                _ => Expr::Variable(["a", "b", "c", "n", "m"][self.below(5) as usize].to_string()),
            };
        }
        let operator = ["+", "-", "*", "^", "&"][self.below(5) as usize];
        Expr::Binary(operator, Box::new(self.expr(depth - 1)), Box::new(self.expr(depth - 1)))
    }
}

impl Expr {
    fn text(&self) -> String {
        match self {
            Expr::Variable(name) => name.clone(),
            Expr::Literal(value) => value.to_string(),
            Expr::Binary(operator, lhs, rhs) => format!("({} {operator} {})", lhs.text(), rhs.text()),
        }
    }

    fn value(&self, state: &State) -> i64 {
        match self {
            Expr::Variable(name) => state.variables[name.as_str()],
            Expr::Literal(value) => *value,
            Expr::Binary(operator, lhs, rhs) => {
                let (a, b) = (lhs.value(state), rhs.value(state));
                match *operator {
                    "+" => a.wrapping_add(b),
                    "-" => a.wrapping_sub(b),
                    "*" => a.wrapping_mul(b),
                    "^" => a ^ b,
                    _ => a & b,
                }
            }
        }
    }
}

const VARIABLES: [&str; 3] = ["a", "b", "c"];

struct State {
    variables: HashMap<&'static str, i64>,
    y: Vec<i64>,
    traced: i64,
}

impl State {
    fn run(&mut self, stmts: &[Stmt]) -> Flow {
        for stmt in stmts {
            let flow = match stmt {
                Stmt::Set(variable, value) => {
                    let value = value.value(self);
                    self.variables.insert(VARIABLES[*variable], value);
                    Flow::Next
                }
                Stmt::Trace(value) => {
                    let value = value.value(self);
                    if let Some(element) = self.y.get_mut(self.traced as usize) {
                        *element = value;
                    }
                    self.traced += 1;
                    Flow::Next
                }
                Stmt::If(cond, then_stmts, else_stmts) => {
                    let taken = if cond.value(self) > 2 { then_stmts } else { else_stmts };
                    self.run(taken)
                }
                Stmt::For(_, bound, body) => {
                    let iterations = bound.value(self) & 3;
                    self.iterations(iterations, body, None)
                }
                Stmt::While(_, bound, body) => self.iterations(4, body, Some(bound)),
                Stmt::Leave(word) => Flow::Leave(word),
            };
            if flow != Flow::Next {
                return flow;
            }
        }
        Flow::Next
    }

    /// The iterations of a loop, while `cond` is more than 1.
    fn iterations(&mut self, iterations: i64, body: &[Stmt], cond: Option<&Expr>) -> Flow {
        for _ in 0..iterations {
            if cond.is_some_and(|cond| cond.value(self) <= 1) {
                break;
            }
            match self.run(body) {
                Flow::Leave("break") => break,
                Flow::Leave("return") => return Flow::Leave("return"),
                Flow::Leave(_) | Flow::Next => {}
            }
        }
        Flow::Next
    }
}

fn print(stmts: &[Stmt], depth: usize, text: &mut String) {
    let indent = "    ".repeat(depth);
    for stmt in stmts {
        match stmt {
            Stmt::Set(variable, value) => text.push_str(&format!("{indent}{} = {};\n", VARIABLES[*variable], value.text())),
            Stmt::Trace(value) => text.push_str(&format!("{indent}store(y + t, {}); t += 1;\n", value.text())),
            Stmt::If(cond, then_stmts, else_stmts) => {
                text.push_str(&format!("{indent}if {} > 2 {{\n", cond.text()));
                print(then_stmts, depth + 1, text);
                if !else_stmts.is_empty() {
                    text.push_str(&format!("{indent}}} else {{\n"));
                    print(else_stmts, depth + 1, text);
                }
                text.push_str(&format!("{indent}}}\n"));
            }
            Stmt::For(name, bound, body) => {
                text.push_str(&format!("{indent}for i{name} in 0..({} & 3) {{\n", bound.text()));
                print(body, depth + 1, text);
                text.push_str(&format!("{indent}}}\n"));
            }
            Stmt::While(name, bound, body) => {
                text.push_str(&format!("{indent}let mut w{name} = 0;\n{indent}while w{name} < 4 && {} > 1 {{\n", bound.text()));
                text.push_str(&format!("{indent}    w{name} += 1;\n"));
                print(body, depth + 1, text);
                text.push_str(&format!("{indent}}}\n"));
            }
            Stmt::Leave(word) => text.push_str(&format!("{indent}{word};\n")),
        }
    }
}

#[test]
fn random_control_flow() {
    let rounds: u64 = std::env::var("ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(150);
    let seed: u64 = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(7);
    println!("SEED={seed} ROUNDS={rounds}");
    for round in 0..rounds {
        let mut random = Random((seed << 32 | (round + 1)).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let stmts = random.stmts(3, 0, &mut 0);
        let mut source = "#[kernel]\nfn random(x: Ptr<i64>, y: PtrMut<i64>, n: i64, m: i64) {\n".to_string();
        source.push_str("    let mut a = n; let mut b = 1; let mut c = m + 2; let mut t = 0;\n");
        print(&stmts, 1, &mut source);
        source.push_str("    store(y + 60, a); store(y + 61, b); store(y + 62, c);\n}\n");
        let program = compile(&source);
        for (n, m) in [(0, 0), (3, 1), (-2, 5), (7, 2)] {
            let variables = HashMap::from([("a", n), ("b", 1), ("c", m + 2), ("n", n), ("m", m)]);
            let mut state = State { variables, y: vec![-1; LENGTH], traced: 0 };
            if state.run(&stmts) == Flow::Next {
                for (index, variable) in VARIABLES.iter().enumerate() {
                    state.y[60 + index] = state.variables[variable];
                }
            }
            assert_eq!(run(&program, &[0; 1], n, m), state.y, "seed {seed}, round {round}, n = {n}, m = {m}\n{source}");
        }
    }
}
