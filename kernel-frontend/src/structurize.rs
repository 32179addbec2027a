//! Structurisation: replaces `return`, `break` and `continue` by nested control flow.
//!
//! The IR has structured control flow only, so the code after a statement that may leave early moves under a condition.
//!
//! ```text
//! before:  if c { return; }   rest
//! after:   if c { } else { rest }
//! ```
//!
//! If the branches alone do not determine whether the rest runs, a hidden variable does:
//!
//! ```text
//! before:  if c { a; if d { return; } }   rest
//! after:   let live = true; if c { a; if d { live = false } }   if live { rest }
//! ```
//!
//! A loop that can be left has a hidden variable `going` in its condition. No code is duplicated, so a body grows only by a constant amount
//! per exit.

mod exits;

use crate::ast::{Block, Expr, ExprKind, If, Name, Pattern, Stmt, StmtKind};
use crate::depth;
use crate::span::{Errors, SourceSpan};
use exits::{ends_of_block, ends_of_stmt, exits_in, if_may_return, leaves_on_one_side, may_end_loop, may_return, returns_in};

/// Rewrites a kernel's body without early exits.
pub(crate) fn run(body: Block, errors: &mut Errors) -> Block {
    let span = body.span;
    let mut cx = Structurer { errors, flags: Vec::new(), depth: 0, next: 0, lists: 0 };
    Block::of(cx.list(body.into_stmts(), span), span)
}

/// Rewrites a device function's body into one value: the value of a `return` becomes the value of its branch.
///
/// ```text
/// before:  if c { return a; }   rest; b
/// after:   if c { a } else { rest; b }
/// ```
pub(crate) fn function(body: Block, errors: &mut Errors) -> Block {
    let mut cx = Structurer { errors, flags: Vec::new(), depth: 0, next: 0, lists: 0 };
    cx.tail(body)
}

/// A hidden variable that exits set to false.
struct Flag {
    name: String,
    /// The number of enclosing loops at its creation; a loop's own `going` counts that loop.
    depth: usize,
    is_going: bool,
}

struct Structurer<'a> {
    errors: &'a mut Errors,
    flags: Vec<Flag>,
    depth: usize,
    next: u32,
    /// The nesting depth of open statement lists.
    lists: usize,
}

impl Structurer<'_> {
    fn list(&mut self, stmts: Vec<Stmt>, span: SourceSpan) -> Vec<Stmt> {
        self.nested(span, Vec::new, |cx| cx.list_inside(stmts, span))
    }

    /// Runs `inside` for a nested statement list, unless the nesting is too deep: the code after an early exit moves into a branch.
    fn nested<R>(&mut self, span: SourceSpan, none: impl FnOnce() -> R, inside: impl FnOnce(&mut Self) -> R) -> R {
        if self.lists >= depth::MOST / depth::BLOCK {
            let (message, help) = depth::message();
            self.errors.push_help(span, message, help);
            return none();
        }
        self.lists += 1;
        let result = inside(self);
        self.lists -= 1;
        result
    }

    fn list_inside(&mut self, stmts: Vec<Stmt>, span: SourceSpan) -> Vec<Stmt> {
        let mut out = Vec::new();
        let mut rest = stmts.into_iter();
        while let Some(stmt) = rest.next() {
            let ends = ends_of_stmt(&stmt);
            let span = stmt.span.to(span);
            match stmt.kind {
                StmtKind::Return(_) | StmtKind::Break | StmtKind::Continue => {
                    if self.depth == 0 && !matches!(stmt.kind, StmtKind::Return(_)) {
                        let keyword = if matches!(stmt.kind, StmtKind::Break) { "break" } else { "continue" };
                        self.errors.push_help(
                            stmt.span,
                            format!("`{keyword}` outside of a loop"),
                            "to end the program early write `return`",
                        );
                    }
                    out.extend(self.exit(&stmt.kind, stmt.span));
                    self.dead(rest.collect(), span, &mut out);
                    return out;
                }
                StmtKind::If(inner) if ends.leaves => {
                    let rest: Vec<Stmt> = rest.collect();
                    self.leaving_if(inner, stmt.span, rest, span, &mut out);
                    return out;
                }
                StmtKind::Block(block) if ends.leaves && is_scopeless(&block) => {
                    let mut flat = block.stmts;
                    flat.extend(rest);
                    out.extend(self.list(flat, span));
                    return out;
                }
                StmtKind::Let(pattern, ty, Expr { kind: ExprKind::If(inner), span: value_span }) if leaves_on_one_side(&inner) => {
                    let rest: Vec<Stmt> = rest.collect();
                    let bind = |block: Block| {
                        let value = Expr { span: block.span, kind: ExprKind::Block(block) };
                        let mut stmts = vec![Stmt { kind: StmtKind::Let(pattern, ty, value), span: value_span }];
                        stmts.extend(rest);
                        stmts
                    };
                    out.push(self.bound_if(*inner, stmt.span, bind, span));
                    return out;
                }
                kind if ends.leaves => {
                    let rest: Vec<Stmt> = rest.collect();
                    self.guarded(Stmt { kind, span: stmt.span }, rest, span, &mut out);
                    return out;
                }
                kind => {
                    let stmt = self.inside(Stmt { kind, span: stmt.span });
                    out.push(stmt);
                }
            }
        }
        out
    }

    /// Rewrites an `if` that may leave: the rest moves into the branch that continues, if exactly one does.
    fn leaving_if(&mut self, inner: If, span: SourceSpan, rest: Vec<Stmt>, end: SourceSpan, out: &mut Vec<Stmt>) {
        let If { cond, then_block, else_block, keyword } = inner;
        let cond = self.expr(cond);
        let then_falls = ends_of_block(&then_block).falls_through;
        let else_falls = else_block.as_ref().is_none_or(|block| ends_of_block(block).falls_through);
        let else_span = else_block.as_ref().map_or(end, |block| block.span);
        let in_scope = |block: Option<Block>, rest: Vec<Stmt>| {
            let mut stmts: Vec<Stmt> = block.into_iter().map(|block| Stmt { span: block.span, kind: StmtKind::Block(block) }).collect();
            stmts.extend(rest);
            stmts
        };
        let (then_stmts, else_stmts, dead) = match (then_falls, else_falls) {
            (false, false) => (then_block.stmts, else_block.map_or_else(Vec::new, |block| block.stmts), rest),
            (false, true) => (then_block.stmts, in_scope(else_block, rest), Vec::new()),
            (true, false) => (in_scope(Some(then_block), rest), else_block.map_or_else(Vec::new, |block| block.stmts), Vec::new()),
            (true, true) => {
                let stmt = Stmt { kind: StmtKind::If(If { cond, then_block, else_block, keyword }), span };
                self.guarded(stmt, rest, end, out);
                return;
            }
        };
        let then_block = Block::of(self.list(then_stmts, end), end);
        let else_stmts = self.list(else_stmts, end);
        let else_block = (!else_stmts.is_empty()).then(|| Block::of(else_stmts, else_span));
        out.push(Stmt { kind: StmtKind::If(If { cond, then_block, else_block, keyword }), span });
        self.dead(dead, end, out);
    }

    /// Rewrites `let x = if c { a } else { return }; rest`.
    fn bound_if(&mut self, inner: If, span: SourceSpan, bind: impl FnOnce(Block) -> Vec<Stmt>, end: SourceSpan) -> Stmt {
        let If { cond, then_block, else_block, keyword } = inner;
        let cond = self.expr(cond);
        let then_falls = ends_of_block(&then_block).falls_through;
        let else_block = else_block.unwrap_or_else(|| Block::of(Vec::new(), end));
        let (then_stmts, else_stmts) =
            if then_falls { (bind(then_block), else_block.into_stmts()) } else { (then_block.into_stmts(), bind(else_block)) };
        let then_block = Block::of(self.list(then_stmts, end), end);
        let else_block = Some(Block::of(self.list(else_stmts, end), end));
        Stmt { kind: StmtKind::If(If { cond, then_block, else_block, keyword }), span }
    }

    /// A statement that may leave, followed by the rest under a condition.
    fn guarded(&mut self, stmt: Stmt, rest: Vec<Stmt>, end: SourceSpan, out: &mut Vec<Stmt>) {
        if rest.is_empty() {
            let stmt = self.inside(stmt);
            out.push(stmt);
            return;
        }
        let name = self.hidden("live");
        out.push(set(&name, true, stmt.span, true));
        self.flags.push(Flag { name: name.clone(), depth: self.depth, is_going: false });
        let stmt = self.inside(stmt);
        self.flags.pop();
        let span = stmt.span;
        out.push(stmt);
        let then_block = Block::of(self.list(rest, end), end);
        let cond = Expr { kind: ExprKind::Name(name), span };
        out.push(Stmt { kind: StmtKind::If(If { cond, then_block, else_block: None, keyword: span }), span });
    }

    /// Rewrites the statements and expressions inside a statement.
    fn inside(&mut self, stmt: Stmt) -> Stmt {
        let span = stmt.span;
        let kind = match stmt.kind {
            StmtKind::If(inner) => {
                let cond = self.expr(inner.cond);
                let then_block = self.block(inner.then_block);
                let else_block = inner.else_block.map(|block| self.block(block));
                StmtKind::If(If { cond, then_block, else_block, keyword: inner.keyword })
            }
            StmtKind::Block(block) => StmtKind::Block(self.block(block)),
            StmtKind::Dead(block) => StmtKind::Dead(self.block(block)),
            StmtKind::For(mut inner) => {
                inner.lower = self.expr(inner.lower);
                inner.upper = self.expr(inner.upper);
                inner.step = inner.step.map(|step| self.expr(step));
                (inner.body, inner.going) = self.loop_body(inner.body);
                StmtKind::For(inner)
            }
            StmtKind::While(mut inner) => {
                inner.cond = self.expr(inner.cond);
                (inner.body, inner.going) = self.loop_body(inner.body);
                StmtKind::While(inner)
            }
            StmtKind::Let(pattern, ty, value) => StmtKind::Let(pattern, ty, self.expr(value)),
            StmtKind::Assign(pattern, value) => StmtKind::Assign(pattern, self.expr(value)),
            StmtKind::Update(target, operator, value) => StmtKind::Update(target, operator, self.expr(value)),
            StmtKind::Expr(value) => StmtKind::Expr(self.expr(value)),
            StmtKind::DeviceAssert(value, message) => StmtKind::DeviceAssert(self.expr(value), message),
            StmtKind::StaticAssert(value, message) => StmtKind::StaticAssert(self.expr(value), message),
            StmtKind::StaticPrint(text, values) => StmtKind::StaticPrint(text, values.into_iter().map(|value| self.expr(value)).collect()),
            StmtKind::DevicePrint(text, values) => StmtKind::DevicePrint(text, values.into_iter().map(|value| self.expr(value)).collect()),
            kind @ (StmtKind::Return(_) | StmtKind::Break | StmtKind::Continue) => kind,
        };
        // A loop that can be left declares its flag in a block around it.
        let going = match &kind {
            StmtKind::For(inner) => inner.going.clone(),
            StmtKind::While(inner) => inner.going.clone(),
            _ => None,
        };
        let stmt = Stmt { kind, span };
        match going {
            Some(name) => Stmt { kind: StmtKind::Block(Block::of(vec![set(&name, true, span, true), stmt], span)), span },
            None => stmt,
        }
    }

    fn block(&mut self, block: Block) -> Block {
        let span = block.span;
        Block::of(self.list(block.into_stmts(), span), span)
    }

    fn loop_body(&mut self, body: Block) -> (Block, Option<String>) {
        let going = body.stmts.iter().any(may_end_loop).then(|| self.hidden("going"));
        self.depth += 1;
        if let Some(name) = &going {
            self.flags.push(Flag { name: name.clone(), depth: self.depth, is_going: true });
        }
        let body = self.block(body);
        if going.is_some() {
            self.flags.pop();
        }
        self.depth -= 1;
        (body, going)
    }

    /// The replacement of an exit: it clears every flag between the exit and its destination.
    fn exit(&self, kind: &StmtKind, span: SourceSpan) -> Vec<Stmt> {
        let clears = |flag: &&Flag| match kind {
            StmtKind::Return(_) => true,
            StmtKind::Break => flag.depth == self.depth,
            _ => flag.depth == self.depth && !flag.is_going,
        };
        self.flags.iter().filter(clears).map(|flag| set(&flag.name, false, span, false)).collect()
    }

    fn dead(&mut self, stmts: Vec<Stmt>, span: SourceSpan, out: &mut Vec<Stmt>) {
        if !stmts.is_empty() {
            let stmts = self.list(stmts, span);
            out.push(Stmt { kind: StmtKind::Dead(Block::of(stmts, span)), span });
        }
    }

    fn hidden(&mut self, what: &str) -> String {
        self.next += 1;
        // The space prevents conflicts with names in the source.
        format!("{what} {}", self.next)
    }

    /// Reports exits inside an expression, which cannot move under a condition, and rewrites the blocks in it.
    fn expr(&mut self, mut expr: Expr) -> Expr {
        let mut found = Vec::new();
        exits_in(&expr, &mut found);
        for span in found {
            self.errors.push_help(
                span,
                "`return`, `break` and `continue` cannot stand inside an expression",
                "make the `if` a statement that assigns to a variable",
            );
        }
        self.blocks_in(&mut expr);
        expr
    }

    /// Rewrites a block at the end of the function: no code follows, so a `return` in it gives its value.
    fn tail(&mut self, block: Block) -> Block {
        let span = block.span;
        self.nested(span, || Block::of(Vec::new(), span), |cx| cx.tail_inside(block))
    }

    fn tail_inside(&mut self, block: Block) -> Block {
        let Block { stmts, value, span } = block;
        let mut out = Vec::new();
        let mut rest = stmts.into_iter();
        while let Some(stmt) = rest.next() {
            let end = |rest: std::vec::IntoIter<Stmt>| Block { stmts: rest.collect(), value: value.clone(), span };
            let given = match stmt.kind {
                StmtKind::Return(given) => {
                    let never = end(rest).into_stmts();
                    self.dead(never, span, &mut out);
                    given.map(|given| self.expr(given))
                }
                StmtKind::If(inner) if if_may_return(&inner) => Some(self.tail_if(inner, stmt.span, end(rest))),
                StmtKind::Let(pattern, ty, Expr { kind: ExprKind::If(inner), span: value_span }) if leaves_on_one_side(&inner) => {
                    let bind = |block: Block| {
                        let value = Expr { span: block.span, kind: ExprKind::Block(block) };
                        let mut after = end(rest);
                        after.stmts.insert(0, Stmt { kind: StmtKind::Let(pattern, ty, value), span: value_span });
                        after
                    };
                    let If { cond, then_block, else_block, keyword } = *inner;
                    let else_block = else_block.unwrap_or_else(|| Block::of(Vec::new(), span));
                    let (then_block, else_block) = match ends_of_block(&then_block).falls_through {
                        true => (self.tail(bind(then_block)), self.tail(else_block)),
                        false => (self.tail(then_block), self.tail(bind(else_block))),
                    };
                    Some(self.if_value(cond, then_block, else_block, keyword, stmt.span))
                }
                StmtKind::Block(block) if is_scopeless(&block) && block.stmts.iter().any(may_return) => {
                    let mut after = end(rest);
                    after.stmts.splice(0..0, block.into_stmts());
                    let after = self.tail(after);
                    out.extend(after.stmts);
                    after.value.map(|value| *value)
                }
                StmtKind::Break | StmtKind::Continue => {
                    let keyword = if matches!(stmt.kind, StmtKind::Break) { "break" } else { "continue" };
                    self.errors.push_help(
                        stmt.span,
                        format!("`{keyword}` outside of a loop"),
                        "to leave the function early write `return x;`",
                    );
                    continue;
                }
                kind => {
                    let stmt = Stmt { kind, span: stmt.span };
                    if may_return(&stmt) {
                        self.unreachable_return(&stmt);
                    } else {
                        out.push(self.inside(stmt));
                    }
                    continue;
                }
            };
            return Block { stmts: out, value: given.map(Box::new), span };
        }
        let value = value.map(|value| {
            let Expr { kind, span } = *value;
            Box::new(match kind {
                ExprKind::If(inner) if if_may_return(&inner) => self.tail_if(*inner, span, Block::of(Vec::new(), span)),
                kind => self.expr(Expr { kind, span }),
            })
        });
        Block { stmts: out, value, span }
    }

    /// Rewrites an `if` that contains a `return`, together with the code after it.
    fn tail_if(&mut self, inner: If, span: SourceSpan, after: Block) -> Expr {
        let If { cond, then_block, else_block, keyword } = inner;
        let falls = |block: &Block| ends_of_block(block).falls_through;
        let else_block = else_block.unwrap_or_else(|| Block::of(Vec::new(), after.span));
        let then = |block: Block, after: Block| {
            let mut after = after;
            // The code after an `if` without a used value is the value.
            if after.stmts.is_empty() && after.value.is_none() {
                return block;
            }
            after.stmts.insert(0, Stmt { span: block.span, kind: StmtKind::Block(Block::of(block.clone().into_stmts(), block.span)) });
            after
        };
        let is_last = after.stmts.is_empty() && after.value.is_none();
        let (then_block, else_block) = match (falls(&then_block), falls(&else_block)) {
            (false, _) => (self.tail(then_block), self.tail(then(else_block, after))),
            (true, false) => (self.tail(then(then_block, after)), self.tail(else_block)),
            (true, true) if is_last => (self.tail(then_block), self.tail(else_block)),
            (true, true) => {
                let stmt = Stmt { kind: StmtKind::If(If { cond, then_block, else_block: Some(else_block), keyword }), span };
                self.unreachable_return(&stmt);
                return Expr { kind: ExprKind::Error, span };
            }
        };
        self.if_value(cond, then_block, else_block, keyword, span)
    }

    fn if_value(&mut self, cond: Expr, then_block: Block, else_block: Block, keyword: SourceSpan, span: SourceSpan) -> Expr {
        let cond = self.expr(cond);
        Expr { kind: ExprKind::If(Box::new(If { cond, then_block, else_block: Some(else_block), keyword })), span }
    }

    /// Reports each `return` whose value would have to skip the code after it.
    fn unreachable_return(&mut self, stmt: &Stmt) {
        let mut found = Vec::new();
        returns_in(stmt, &mut found);
        for span in found {
            let help = "assign to a variable, leave loops with `break`, and give the variable at the end; an `if` that always returns may stand anywhere";
            self.errors.push_help(span, "a device function returns from its end, or from an `if` that always does", help);
        }
    }

    fn blocks_in(&mut self, expr: &mut Expr) {
        match &mut expr.kind {
            ExprKind::If(inner) => {
                self.blocks_in(&mut inner.cond);
                self.value_block(&mut inner.then_block);
                if let Some(block) = &mut inner.else_block {
                    self.value_block(block);
                }
            }
            ExprKind::Block(block) => self.value_block(block),
            _ => expr.operands_mut().into_iter().for_each(|operand| self.blocks_in(operand)),
        }
    }

    fn value_block(&mut self, block: &mut Block) {
        let stmts = std::mem::take(&mut block.stmts);
        if stmts.iter().any(|stmt| ends_of_stmt(stmt).leaves) {
            // The error has been reported, so the block's value is left unknown.
            block.value = Some(Box::new(Expr { kind: ExprKind::Error, span: block.span }));
        }
        block.stmts = self.list(stmts, block.span);
        if let Some(value) = &mut block.value {
            self.blocks_in(value);
        }
    }
}

/// `let name = value;` or `name = value;`.
fn set(name: &str, value: bool, span: SourceSpan, declare: bool) -> Stmt {
    let pattern = Pattern::Name { name: Name { text: name.to_string(), span }, mutable: true };
    let value = Expr { kind: ExprKind::Bool(value), span };
    let kind = if declare { StmtKind::Let(pattern, None, value) } else { StmtKind::Assign(pattern, value) };
    Stmt { kind, span }
}

/// Can the block's statements move into the surrounding list without hiding names?
fn is_scopeless(block: &Block) -> bool {
    !block.stmts.iter().any(|stmt| matches!(stmt.kind, StmtKind::Let(..)))
}
