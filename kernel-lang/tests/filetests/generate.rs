//! Random kernels: mostly well typed, with every construct of the language nested in every other.

/// What an expression gives.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Index,
    I32,
    F32,
    Bool,
    Tile,
    IndexTile,
    BoolTile,
}

use Kind::{Bool, BoolTile, F32, I32, Index, IndexTile, Tile};

const KINDS: [Kind; 7] = [Index, I32, F32, Bool, Tile, IndexTile, BoolTile];

struct Generator {
    state: u64,
    text: String,
    /// Variables in scope, whether they may be assigned to.
    variables: Vec<(String, Kind, bool)>,
    next: u32,
    loops: u32,
    budget: u32,
}

/// The text of a kernel; the same for the same seed.
pub(crate) fn kernel(seed: u64) -> String {
    let parameters = [("n", Index), ("m", I32), ("a", F32), ("on", Bool)];
    let variables = parameters.iter().map(|(name, kind)| ((*name).to_string(), *kind, false)).collect();
    let state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut generator = Generator { state, text: String::new(), variables, next: 0, loops: 0, budget: 40 };
    generator.line(0, "#[kernel(N = 64, FAST = true)]");
    generator.line(0, "fn random<const N: usize, const FAST: bool>(x: Ptr<f32>, y: PtrMut<f32>, n: usize, m: i32, a: f32, on: bool) {");
    generator.line(1, "let offsets = program_id(0) * N + arange(0, N);");
    generator.variables.push(("offsets".to_string(), IndexTile, false));
    generator.block(1);
    generator.line(0, "}");
    generator.text
}

impl Generator {
    fn random(&mut self, below: usize) -> usize {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        (self.state % below as u64) as usize
    }

    fn line(&mut self, depth: usize, text: &str) {
        self.text.push_str(&"    ".repeat(depth));
        self.text.push_str(text);
        self.text.push('\n');
    }

    fn block(&mut self, depth: usize) {
        let visible = self.variables.len();
        for _ in 0..2 + self.random(4) {
            self.statement(depth);
        }
        self.variables.truncate(visible);
    }

    fn statement(&mut self, depth: usize) {
        if self.budget == 0 {
            return;
        }
        self.budget -= 1;
        let deep = depth > 4;
        match self.random(if deep { 5 } else { 11 }) {
            0 | 1 => {
                let kind = KINDS[self.random(KINDS.len())];
                self.next += 1;
                let name = format!("v{}", self.next);
                // Half of the scalars begin as bare literals, whose type is found later.
                let value = match (kind, self.random(2)) {
                    (F32, 0) => "0.5".to_string(),
                    (Index, 0) => "3".to_string(),
                    _ => self.expr(kind, 2),
                };
                self.line(depth, &format!("let mut {name} = {value};"));
                self.variables.push((name, kind, true));
            }
            2 | 3 => {
                let mutable: Vec<(String, Kind, bool)> = self.variables.iter().filter(|variable| variable.2).cloned().collect();
                if mutable.is_empty() {
                    return;
                }
                let (name, kind, _) = mutable[self.random(mutable.len())].clone();
                let value = self.expr(kind, 2);
                let operator = match kind {
                    Bool | BoolTile => ["=", "&=", "|="][self.random(3)],
                    _ => ["=", "+=", "*="][self.random(3)],
                };
                self.line(depth, &format!("{name} {operator} {value};"));
            }
            4 => {
                let (offset, value, mask) = (self.expr(IndexTile, 1), self.expr(Tile, 2), self.expr(BoolTile, 1));
                self.line(depth, &format!("store(y + {offset}, {value}, mask = {mask});"));
            }
            5 | 6 => {
                let cond = if self.random(4) == 0 { "FAST".to_string() } else { self.expr(Bool, 2) };
                self.line(depth, &format!("if {cond} {{"));
                self.block(depth + 1);
                self.exit(depth + 1);
                if self.random(2) == 0 {
                    self.line(depth, "} else {");
                    self.block(depth + 1);
                    self.exit(depth + 1);
                }
                self.line(depth, "}");
            }
            7 => {
                self.next += 1;
                let (name, lower) = (format!("i{}", self.next), self.random(3));
                let range = match self.random(3) {
                    0 => format!("{lower}..n"),
                    1 => format!("range({lower}, m, 2)"),
                    _ => "(0..N).step_by(16)".to_string(),
                };
                let kind = if range.contains('m') { I32 } else { Index };
                self.line(depth, &format!("for {name} in {range} {{"));
                self.variables.push((name, kind, false));
                self.loops += 1;
                self.block(depth + 1);
                self.exit(depth + 1);
                self.loops -= 1;
                self.variables.pop();
                self.line(depth, "}");
            }
            8 => {
                self.next += 1;
                let name = format!("w{}", self.next);
                self.line(depth, &format!("let mut {name} = 0;"));
                let cond = self.expr(Bool, 1);
                self.line(depth, &format!("while {name} < 5 && {cond} {{"));
                self.line(depth + 1, &format!("{name} += 1;"));
                self.variables.push((name, Index, false));
                self.loops += 1;
                self.block(depth + 1);
                self.exit(depth + 1);
                self.loops -= 1;
                self.variables.pop();
                self.line(depth, "}");
            }
            9 => {
                self.line(depth, "{");
                self.block(depth + 1);
                self.line(depth, "}");
            }
            _ => {
                let cond = self.expr(Bool, 1);
                let exit = if self.loops > 0 { ["return", "break", "continue"][self.random(3)] } else { "return" };
                let kind = KINDS[self.random(KINDS.len())];
                self.next += 1;
                let (name, value) = (format!("v{}", self.next), self.expr(kind, 1));
                self.line(depth, &format!("let {name} = if {cond} {{ {value} }} else {{ {exit} }};"));
                self.variables.push((name, kind, false));
            }
        }
    }

    /// Sometimes leaves what it stands in.
    fn exit(&mut self, depth: usize) {
        let exit = match self.random(6) {
            0 => "return;",
            1 if self.loops > 0 => "break;",
            2 if self.loops > 0 => "continue;",
            _ => return,
        };
        self.line(depth, exit);
    }

    fn expr(&mut self, kind: Kind, depth: u32) -> String {
        let known: Vec<String> = self.variables.iter().filter(|variable| variable.1 == kind).map(|variable| variable.0.clone()).collect();
        if depth == 0 || self.random(4) == 0 {
            if !known.is_empty() && self.random(3) != 0 {
                return known[self.random(known.len())].clone();
            }
            return match kind {
                Index => "program_id(0)".to_string(),
                I32 => "7i32".to_string(),
                F32 => "1.5f32".to_string(),
                Bool => "(n > 3)".to_string(),
                Tile => "zeros::<f32>([N])".to_string(),
                IndexTile => "arange(0, N)".to_string(),
                BoolTile => "(offsets < n)".to_string(),
            };
        }
        let depth = depth - 1;
        match (kind, self.random(5)) {
            (Bool | BoolTile, 0) => {
                let of = if kind == Bool { [Index, I32, F32][self.random(3)] } else { [Tile, IndexTile][self.random(2)] };
                let (a, b) = (self.expr(of, depth), self.expr(of, depth));
                format!("({a} {} {b})", ["<", "<=", "==", "!=", ">"][self.random(5)])
            }
            (Bool | BoolTile, 1) => format!("!{}", self.expr(kind, depth)),
            (Bool | BoolTile, _) => {
                let (a, b) = (self.expr(kind, depth), self.expr(kind, depth));
                format!("({a} {} {b})", ["&&", "||", "&", "|", "^"][self.random(5)])
            }
            (_, 0) => {
                let (c, a, b) = (self.expr(Bool, depth), self.expr(kind, depth), self.expr(kind, depth));
                format!("if {c} {{ {a} }} else {{ {b} }}").replacen("if", "(if", 1) + ")"
            }
            (Tile, 1) => {
                let (o, m) = (self.expr(IndexTile, depth), self.expr(BoolTile, depth));
                format!("load(x + {o}, mask = {m}, other = 1.0)")
            }
            (Tile, 2) => format!("({} as f32)", self.expr(IndexTile, depth)),
            (F32, 1) => format!("load(x + {})", self.expr(Index, depth)),
            (F32, 2) => format!("({} as f32)", self.expr(I32, depth)),
            (Tile | IndexTile, 3) => {
                let (c, a, b) = (self.expr(BoolTile, depth), self.expr(kind, depth), self.expr(kind, depth));
                format!("select({c}, {a}, {b})")
            }
            _ => {
                let (a, b) = (self.expr(kind, depth), self.expr(kind, depth));
                match self.random(5) {
                    0 => format!("min({a}, {b})"),
                    1 => format!("({a} - {b})"),
                    2 => format!("({a} * 2)"),
                    _ => format!("({a} + {b})"),
                }
            }
        }
    }
}
