//! Bounds of indices: scalar expressions, and what a kernel tests of them.
//!
//! Each expression exists once.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::dtype::Dtype;
use crate::ir::{BinaryOp, UnaryOp, Value};

/// Every element is at least minus this, and less than this.
pub(super) const END: i64 = 1 << 31;

/// A scalar expression: its number in [`Bounds`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Bound(u32);

impl Bound {
    /// The bound of this number.
    pub(super) fn of(at: usize) -> Bound {
        Bound(at as u32)
    }

    /// Its number. Operands have smaller ones.
    pub(super) fn at(self) -> usize {
        self.0 as usize
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Node {
    Constant(i64),
    /// An `i64` scalar, at least 0 and less than 2^31.
    Scalar(Value),
    /// The length of a pointer's tensor.
    Length(Value),
    /// `Add`, `Sub`, `Mul`, `Div`, `Min` or `Max`.
    Binary(BinaryOp, Bound, Bound),
    /// A float constant: the bits of an `f64`.
    Float(Dtype, u64),
    /// Of a float.
    Unary(UnaryOp, Bound),
    /// Of or to a float.
    Cast(Dtype, Bound),
}

/// What a kernel tests before it relies on the ranges.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Check {
    /// At least 0 and less than 2^31.
    Fits(Bound),
    /// At least 0.
    NotNegative(Bound),
}

/// Scalar expressions, each once, and the checks.
#[derive(Clone, Debug, Default)]
pub struct Bounds {
    nodes: Vec<Node>,
    /// By bound: a number that it is not less than because of its operands, if one is known.
    least: Vec<Option<i64>>,
    /// By bound: does it contain a division?
    divides: Vec<bool>,
    numbers: FxHashMap<Node, Bound>,
    pub(super) checks: Vec<Check>,
    checked: FxHashSet<Check>,
}

impl Bounds {
    pub(super) fn number(&mut self, node: Node) -> Bound {
        if let Some(known) = self.numbers.get(&node) {
            return *known;
        }
        let number = Bound(self.nodes.len() as u32);
        self.least.push(match node {
            Node::Constant(constant) => Some(constant),
            Node::Scalar(_) | Node::Length(_) => Some(0),
            Node::Binary(op, x, y) => self.least_of(op, x, y),
            Node::Float(..) | Node::Unary(..) | Node::Cast(..) => None,
        });
        self.divides.push(match node {
            Node::Binary(op, x, y) => op == BinaryOp::Div || self.divides(x) || self.divides(y),
            Node::Unary(_, x) | Node::Cast(_, x) => self.divides(x),
            _ => false,
        });
        self.nodes.push(node);
        self.numbers.insert(node, number);
        number
    }

    pub(super) fn constant(&mut self, constant: i64) -> Bound {
        self.number(Node::Constant(constant))
    }

    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    pub(super) fn as_constant(&self, bound: Bound) -> Option<i64> {
        if let Node::Constant(constant) = self.node(bound) { Some(constant) } else { None }
    }

    pub(super) fn node(&self, bound: Bound) -> Node {
        self.nodes[bound.0 as usize]
    }

    pub(super) fn binary(&mut self, op: BinaryOp, lhs: Bound, rhs: Bound) -> Bound {
        let folded = match (op, self.node(lhs), self.node(rhs)) {
            (_, Node::Constant(x), Node::Constant(y)) => match op {
                BinaryOp::Add => x.checked_add(y),
                BinaryOp::Sub => x.checked_sub(y),
                BinaryOp::Mul => x.checked_mul(y),
                BinaryOp::Div => x.checked_div(y),
                BinaryOp::Min => Some(x.min(y)),
                BinaryOp::Max => Some(x.max(y)),
                _ => None,
            },
            (BinaryOp::Add | BinaryOp::Sub, _, Node::Constant(0)) | (BinaryOp::Mul | BinaryOp::Div, _, Node::Constant(1)) => return lhs,
            (BinaryOp::Add, Node::Constant(0), _) | (BinaryOp::Mul, Node::Constant(1), _) => return rhs,
            (BinaryOp::Mul, _, Node::Constant(0)) | (BinaryOp::Mul | BinaryOp::Div, Node::Constant(0), _) => Some(0),
            (BinaryOp::Min | BinaryOp::Max, x, y) if x == y => return lhs,
            (BinaryOp::Min, Node::Constant(0), _) if self.is_not_negative(rhs) => return lhs,
            (BinaryOp::Max, Node::Constant(0), _) if self.is_not_negative(rhs) => return rhs,
            (BinaryOp::Min, _, Node::Constant(0)) if self.is_not_negative(lhs) => return rhs,
            (BinaryOp::Max, _, Node::Constant(0)) if self.is_not_negative(lhs) => return lhs,
            // a - 1 + 1, and the like.
            (BinaryOp::Add | BinaryOp::Sub, Node::Binary(inner @ (BinaryOp::Add | BinaryOp::Sub), x, c), Node::Constant(y))
                if let Node::Constant(c) = self.node(c) =>
            {
                let signed = |op, number: i64| if op == BinaryOp::Add { i128::from(number) } else { -i128::from(number) };
                match i64::try_from(signed(inner, c) + signed(op, y)) {
                    Ok(sum) => {
                        let sum = self.constant(sum);
                        return self.binary(BinaryOp::Add, x, sum);
                    }
                    Err(_) => None,
                }
            }
            _ => None,
        };
        match folded {
            Some(constant) => self.constant(constant),
            None => self.number(Node::Binary(op, lhs, rhs)),
        }
    }

    /// A number that a bound is not less than if all checks hold.
    fn least(&self, bound: Bound) -> Option<i64> {
        let checked = self.checked.contains(&Check::NotNegative(bound)).then_some(0);
        self.least[bound.0 as usize].max(checked)
    }

    fn least_of(&self, op: BinaryOp, x: Bound, y: Bound) -> Option<i64> {
        let (least, other) = (self.least(x), self.least(y));
        match op {
            BinaryOp::Add => least?.checked_add(other?),
            BinaryOp::Sub => least?.checked_sub(self.as_constant(y)?),
            BinaryOp::Max => least.max(other),
            BinaryOp::Min => Some(least?.min(other?)),
            _ => (least? >= 0 && other? >= 0).then_some(0),
        }
    }

    /// Is the bound at least 0 if all checks hold?
    pub(super) fn is_not_negative(&self, bound: Bound) -> bool {
        self.least(bound).is_some_and(|least| least >= 0)
    }

    /// Is the bound negative, or at most 0 and mostly negative, if all checks hold?
    pub(super) fn is_negative(&self, bound: Bound) -> bool {
        match self.node(bound) {
            Node::Constant(constant) => constant < 0,
            Node::Binary(BinaryOp::Sub, x, y) => self.as_constant(x).is_some_and(|x| x <= 0) && self.is_not_negative(y),
            _ => false,
        }
    }

    /// Is a division needed to compute the bound?
    pub(super) fn divides(&self, bound: Bound) -> bool {
        self.divides[bound.0 as usize]
    }

    /// Is one integer at most as large as another one of the same form, if all checks hold?
    pub(super) fn is_at_most(&self, lesser: Bound, greater: Bound, steps: u32) -> bool {
        let (x, y) = (self.without_constant(lesser), self.without_constant(greater));
        if x.0 == y.0 {
            return x.1 <= y.1;
        }
        let (Node::Binary(op, x, p), Node::Binary(other, y, q)) = (self.node(lesser), self.node(greater)) else { return false };
        if steps == 0 || op != other {
            return false;
        }
        let is_at_most = |lesser, greater| self.is_at_most(lesser, greater, steps - 1);
        match op {
            BinaryOp::Add | BinaryOp::Min | BinaryOp::Max => is_at_most(x, y) && is_at_most(p, q),
            BinaryOp::Sub => is_at_most(x, y) && is_at_most(q, p),
            BinaryOp::Mul => p == q && self.is_not_negative(p) && is_at_most(x, y) || x == y && self.is_not_negative(x) && is_at_most(p, q),
            _ => false,
        }
    }

    /// A sum as a bound, if it is more than a constant, and a constant.
    fn without_constant(&self, bound: Bound) -> (Option<Bound>, i128) {
        let constant = |of: Bound| self.as_constant(of).map(i128::from);
        match self.node(bound) {
            Node::Constant(constant) => (None, constant.into()),
            Node::Binary(BinaryOp::Add, x, y) if let Some(constant) = constant(y) => (Some(x), constant),
            Node::Binary(BinaryOp::Sub, x, y) if let Some(constant) = constant(y) => (Some(x), -constant),
            _ => (Some(bound), 0),
        }
    }

    /// Requires one check in place of another one, which it implies.
    pub(super) fn replace(&mut self, at: usize, check: Check) {
        self.checked.insert(check);
        self.checks[at] = check;
    }

    pub(super) fn require(&mut self, check: Check) {
        let is_known = match check {
            Check::Fits(bound) => matches!(self.node(bound), Node::Constant(constant) if (0..END).contains(&constant)),
            Check::NotNegative(bound) => matches!(self.node(bound), Node::Constant(constant) if constant >= 0),
        };
        if !is_known && self.checked.insert(check) {
            self.checks.push(check);
        }
    }
}
