//! Early exits of statements and expressions: may a statement leave its list, return, or end the loop around it?

use crate::ast::{Block, Expr, ExprKind, If, Stmt, StmtKind};
use crate::span::SourceSpan;

/// The exits of a statement.
#[derive(Clone, Copy)]
pub(super) struct Ends {
    /// May the next statement run?
    pub(super) falls_through: bool,
    /// May it leave the surrounding statement list?
    pub(super) leaves: bool,
}

const PLAIN: Ends = Ends { falls_through: true, leaves: false };

/// Does exactly one branch of an `if` with a value always leave, and the other never?
pub(super) fn leaves_on_one_side(inner: &If) -> bool {
    let Some(else_block) = &inner.else_block else { return false };
    let (then_ends, else_ends) = (ends_of_block(&inner.then_block), ends_of_block(else_block));
    (!then_ends.falls_through && !else_ends.leaves) || (!else_ends.falls_through && !then_ends.leaves)
}

pub(super) fn ends_of_block(block: &Block) -> Ends {
    let mut ends = PLAIN;
    for stmt in &block.stmts {
        let stmt = ends_of_stmt(stmt);
        ends.leaves |= stmt.leaves;
        ends.falls_through &= stmt.falls_through;
    }
    match block.value.as_deref() {
        Some(Expr { kind: ExprKind::If(inner), .. }) => {
            let value = ends_of_if(inner);
            Ends { falls_through: ends.falls_through && value.falls_through, leaves: ends.leaves || value.leaves }
        }
        Some(Expr { kind: ExprKind::Block(inner), .. }) => {
            let value = ends_of_block(inner);
            Ends { falls_through: ends.falls_through && value.falls_through, leaves: ends.leaves || value.leaves }
        }
        _ => ends,
    }
}

fn ends_of_if(inner: &If) -> Ends {
    let then_ends = ends_of_block(&inner.then_block);
    let else_ends = inner.else_block.as_ref().map_or(PLAIN, ends_of_block);
    Ends { falls_through: then_ends.falls_through || else_ends.falls_through, leaves: then_ends.leaves || else_ends.leaves }
}

pub(super) fn ends_of_stmt(stmt: &Stmt) -> Ends {
    match &stmt.kind {
        StmtKind::Return(_) | StmtKind::Break | StmtKind::Continue => Ends { falls_through: false, leaves: true },
        StmtKind::If(inner) => ends_of_if(inner),
        StmtKind::Block(block) => ends_of_block(block),
        // `break` and `continue` stay inside a loop; only `return` leaves it.
        StmtKind::For(inner) => Ends { falls_through: true, leaves: inner.body.stmts.iter().any(may_return) },
        StmtKind::While(inner) => Ends { falls_through: true, leaves: inner.body.stmts.iter().any(may_return) },
        StmtKind::Let(_, _, Expr { kind: ExprKind::If(inner), .. }) if leaves_on_one_side(inner) => {
            Ends { falls_through: true, leaves: true }
        }
        _ => PLAIN,
    }
}

pub(super) fn if_may_return(inner: &If) -> bool {
    [Some(&inner.then_block), inner.else_block.as_ref()].into_iter().flatten().any(|block| {
        block.stmts.iter().any(may_return) || block.value.as_deref().is_some_and(|value| may_return(&Stmt::of_expr(value.clone())))
    })
}

/// Collects every `return` in a statement.
pub(super) fn returns_in(stmt: &Stmt, found: &mut Vec<SourceSpan>) {
    let mut in_block = |block: &Block| {
        block.stmts.iter().for_each(|stmt| returns_in(stmt, found));
        if let Some(value) = &block.value {
            returns_in(&Stmt::of_expr((**value).clone()), found);
        }
    };
    match &stmt.kind {
        StmtKind::Return(_) => found.push(stmt.span),
        StmtKind::If(inner) => {
            in_block(&inner.then_block);
            inner.else_block.iter().for_each(in_block);
        }
        StmtKind::Let(_, _, Expr { kind: ExprKind::If(inner), .. }) => {
            in_block(&inner.then_block);
            inner.else_block.iter().for_each(in_block);
        }
        StmtKind::Block(block) => in_block(block),
        StmtKind::For(inner) => in_block(&inner.body),
        StmtKind::While(inner) => in_block(&inner.body),
        _ => {}
    }
}

pub(super) fn may_return(stmt: &Stmt) -> bool {
    any_exit(stmt, &mut |kind, _| matches!(kind, StmtKind::Return(_)), false)
}

/// Does the statement contain a `return`, or a `break` of the loop around it?
pub(super) fn may_end_loop(stmt: &Stmt) -> bool {
    any_exit(stmt, &mut |kind, nested| matches!(kind, StmtKind::Return(_)) || (matches!(kind, StmtKind::Break) && !nested), false)
}

/// Does a nested statement satisfy `test`? Its second argument tells whether the statement is in an inner loop.
fn any_exit(stmt: &Stmt, test: &mut dyn FnMut(&StmtKind, bool) -> bool, nested: bool) -> bool {
    let mut in_block = |block: &Block, nested: bool| {
        block.stmts.iter().any(|stmt| any_exit(stmt, test, nested))
            || block.value.as_deref().is_some_and(|value| any_exit(&Stmt::of_expr(value.clone()), test, nested))
    };
    match &stmt.kind {
        StmtKind::If(inner) => {
            in_block(&inner.then_block, nested) || inner.else_block.as_ref().is_some_and(|block| in_block(block, nested))
        }
        StmtKind::Let(_, _, Expr { kind: ExprKind::If(inner), .. }) => {
            in_block(&inner.then_block, nested) || inner.else_block.as_ref().is_some_and(|block| in_block(block, nested))
        }
        StmtKind::Block(block) => in_block(block, nested),
        StmtKind::For(inner) => in_block(&inner.body, true),
        StmtKind::While(inner) => in_block(&inner.body, true),
        kind => test(kind, nested),
    }
}

/// Collects the exits inside an expression.
pub(super) fn exits_in(expr: &Expr, found: &mut Vec<SourceSpan>) {
    let in_block = |block: &Block, found: &mut Vec<SourceSpan>| {
        for stmt in &block.stmts {
            exits_in_stmt(stmt, found);
        }
        if let Some(value) = &block.value {
            exits_in(value, found);
        }
    };
    match &expr.kind {
        ExprKind::If(inner) => {
            exits_in(&inner.cond, found);
            in_block(&inner.then_block, found);
            if let Some(block) = &inner.else_block {
                in_block(block, found);
            }
        }
        ExprKind::Block(block) => in_block(block, found),
        _ => expr.operands().into_iter().for_each(|operand| exits_in(operand, found)),
    }
}

fn exits_in_stmt(stmt: &Stmt, found: &mut Vec<SourceSpan>) {
    match &stmt.kind {
        StmtKind::Return(_) | StmtKind::Break | StmtKind::Continue => found.push(stmt.span),
        StmtKind::If(inner) => {
            exits_in(&Expr { kind: ExprKind::If(Box::new(inner.clone())), span: stmt.span }, found);
        }
        StmtKind::Block(block) => exits_in(&Expr { kind: ExprKind::Block(block.clone()), span: stmt.span }, found),
        StmtKind::Let(_, _, value) | StmtKind::Assign(_, value) | StmtKind::Update(_, _, value) | StmtKind::Expr(value) => {
            exits_in(value, found)
        }
        // `break` and `continue` stay inside a loop in an expression's block.
        StmtKind::For(_) | StmtKind::While(_) if may_return(stmt) => found.push(stmt.span),
        _ => {}
    }
}
