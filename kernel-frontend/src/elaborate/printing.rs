//! Elaboration of `static_print!` and `device_print!`.

use super::Elaborator;
use super::convert::shapes_help;
use super::meaning::{Kind, Meaning};
use crate::ast::Expr;
use crate::span::SourceSpan;
use kernel_lang::ir::template::{self, Piece};
use kernel_lang::ir::{Op, Value};

impl Elaborator<'_> {
    /// Constants print their values; everything else prints its type.
    pub(super) fn static_print(&mut self, text: &str, args: &[Expr], span: SourceSpan) {
        let mut args = args.iter().peekable();
        let (mut format, mut values) = (String::new(), Vec::new());
        for piece in template::parse(text).expect("the parser wrote the template") {
            match (&piece, args.next_if(|_| matches!(piece, Piece::Value { .. }))) {
                (Piece::Value { .. }, Some(arg)) => match self.expr(arg) {
                    Meaning::Poison => return,
                    Meaning::Constant(constant) if !matches!(constant.kind, Kind::Outer(_)) => {
                        format.push_str(&piece.to_string());
                        values.push(constant.expr);
                    }
                    meaning => format.push_str(&Piece::Text(self.describe(&meaning).replace('`', "")).to_string()),
                },
                _ => format.push_str(&piece.to_string()),
            }
        }
        self.append(Op::StaticPrint { format, values }, span);
    }

    /// Scalars are repeated beside tiles.
    pub(super) fn device_print(&mut self, text: &str, args: &[Expr], span: SourceSpan) {
        let meanings: Vec<Meaning> = args.iter().map(|arg| self.expr(arg)).collect();
        let values: Vec<Option<Value>> = meanings.iter().zip(args).map(|(meaning, arg)| self.value(meaning, arg.span)).collect();
        let Some(values) = values.into_iter().collect::<Option<Vec<Value>>>() else { return };
        let shown: Vec<Meaning> = values.iter().map(|value| Meaning::Value(*value)).collect();
        let shape = match self.common_shape(&shown.iter().collect::<Vec<_>>()) {
            Ok(shape) => shape,
            Err((x, y)) => {
                let found: Vec<String> = meanings.iter().map(|meaning| self.describe(meaning)).collect();
                let help = shapes_help(&x, &y, "print tiles of other shapes by a `device_print!` of their own");
                self.errors.push_help(span, format!("the values of `device_print!` differ in shape: {}", found.join(", ")), help);
                return;
            }
        };
        let spread: Option<Vec<Value>> = values.iter().zip(args).map(|(value, arg)| self.with_shape(*value, &shape, arg.span)).collect();
        let Some(values) = spread else { return };
        let site = self.prints;
        self.prints += 1;
        self.append(Op::Print { values, format: text.to_string(), site }, span);
    }
}
