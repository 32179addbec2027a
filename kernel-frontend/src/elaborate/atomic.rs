//! Atomic operations: `atomic_add` and the others.

use super::meaning::Meaning;
use super::memory::Target;
use super::{Elaborator, Value};
use crate::ast::{Call, ExprKind};
use crate::span::SourceSpan;
use kernel_lang::dtype::Dtype;
use kernel_lang::ir::{AtomicOp, ConstExpr, Elem, Op, Scope, Semantics, Type};

impl Elaborator<'_> {
    pub(super) fn atomic(&mut self, atomic: AtomicOp, call: &Call, span: SourceSpan) -> Meaning {
        let before = self.errors.len();
        let target = self.target(call, span);
        let given: Vec<Meaning> = call.args[1..].iter().map(|value| self.expr(value)).collect();
        let sem = self.semantics(atomic, call);
        let scope = self.scope(call);
        let Some(Target { base, offset, mask }) = target else { return Meaning::Poison };
        if atomic.writes() && !self.is_writable(base, "change", call.args[0].span) {
            return Meaning::Poison;
        }
        let elem = self.func.ty(base).elem().clone();
        if !self.has_atomic(atomic, &elem, call.args[0].span) {
            return Meaning::Poison;
        }
        let shape = self.func.ty(offset).shape().to_vec();
        let mut values: Vec<Value> = Vec::new();
        for (index, (meaning, expr)) in given.iter().zip(&call.args[1..]).enumerate() {
            let role = if index + 1 < given.len() { "what is compared by" } else { "the value of" };
            values.extend(self.element(meaning, &elem, &shape, expr, &format!("{role} an `{}`", atomic.builtin())));
        }
        if self.errors.len() > before || values.len() < given.len() {
            // The result has the right type, so that the code after it can be checked.
            return match atomic.has_result() {
                true => self.emit(Op::Const { value: ConstExpr::Param("mistake".into()) }, &[Type::tile(elem, shape)], span).into(),
                false => Meaning::UNIT,
            };
        }
        let op = Op::Atomic { base, offset, values, op: atomic, mask, sem, scope, in_bounds: false, align: 0 };
        if atomic.has_result() {
            self.emit(op, &[], span).into()
        } else {
            self.append(op, span);
            Meaning::UNIT
        }
    }

    /// Do the elements support the atomic? A type parameter is checked again when it is bound, because its bound may allow more types than
    /// are used.
    fn has_atomic(&mut self, atomic: AtomicOp, elem: &Elem, span: SourceSpan) -> bool {
        let allowed = atomic.dtypes();
        if self.choices(elem).iter().any(|dtype| allowed.contains(dtype)) {
            return true;
        }
        let (name, types) = (atomic.builtin(), atomic.describe_types());
        let help = match elem {
            Elem::Dtype(dtype) if dtype.is_float() && allowed.iter().all(|dtype| dtype.is_int()) => {
                "bits are those of integers: let the tensor hold `u32`".to_string()
            }
            Elem::Dtype(dtype) => {
                let kind = |dtype: &Dtype| (dtype.is_float(), dtype.is_signed_int());
                let wider = allowed.iter().find(|other| kind(other) == kind(dtype) && other.bits() > dtype.bits()).unwrap_or(&allowed[0]);
                format!("let the tensor hold `{wider}`")
            }
            Elem::Param(name) => format!("`{name}` stands for none of them: use a type that they have"),
        };
        self.errors.push_help(span, format!("`{name}` takes {types}, not `{elem}`"), help);
        false
    }

    fn semantics(&mut self, atomic: AtomicOp, call: &Call) -> Semantics {
        let allowed = atomic.semantics();
        let Some(expr) = self.option(call, "sem") else { return allowed[0] };
        let texts: Vec<&'static str> = allowed.iter().map(|sem| sem.text()).collect();
        if let ExprKind::Text(text) = &expr.kind
            && Semantics::ALL.iter().any(|sem| sem.text() == text && !allowed.contains(sem))
        {
            let does = if atomic.writes() { "a store releases" } else { "a load acquires" };
            let help = format!("{does}: write `\"{}\"`", texts.join("\"` or `\""));
            self.errors.push_help(expr.span, format!("`sem = \"{text}\"` has no meaning for `{}`", atomic.builtin()), help);
            return allowed[0];
        }
        let found = self.option_text(call, "sem", expr, &texts);
        allowed.iter().copied().find(|sem| Some(sem.text()) == found).unwrap_or(allowed[0])
    }

    fn scope(&mut self, call: &Call) -> Scope {
        let Some(expr) = self.option(call, "scope") else { return Scope::Gpu };
        let texts: Vec<&'static str> = Scope::ALL.iter().map(|scope| scope.text()).collect();
        let found = self.option_text(call, "scope", expr, &texts);
        Scope::ALL.iter().copied().find(|scope| Some(scope.text()) == found).unwrap_or_default()
    }
}
