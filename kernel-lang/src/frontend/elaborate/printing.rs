//! `static_print!` and `device_print!`.

use super::Elaborator;
use super::convert::shapes_help;
use super::meaning::Meaning;
use crate::frontend::ast::Expr;
use crate::frontend::place::Place;
use crate::ir::template::{self, Piece};
use crate::ir::{Op, Value};

impl Elaborator<'_> {
    /// Constants are written as numbers; of everything else, its type.
    pub(super) fn static_print(&mut self, text: &str, args: &[Expr], place: Place) {
        let mut args = args.iter().peekable();
        let (mut format, mut values) = (String::new(), Vec::new());
        for piece in template::parse(text).expect("the parser wrote the template") {
            match (&piece, args.next_if(|_| matches!(piece, Piece::Value { .. }))) {
                (Piece::Value { .. }, Some(arg)) => match self.expr(arg) {
                    Meaning::Poison => return,
                    Meaning::Constant(constant) => {
                        format.push_str(&piece.to_string());
                        values.push(constant.expr);
                    }
                    meaning => format.push_str(&Piece::Text(self.describe(&meaning).replace('`', "")).to_string()),
                },
                _ => format.push_str(&piece.to_string()),
            }
        }
        self.append(Op::StaticPrint { format, values }, place);
    }

    /// Scalars are repeated beside tiles.
    pub(super) fn device_print(&mut self, text: &str, args: &[Expr], place: Place) {
        let meanings: Vec<Meaning> = args.iter().map(|arg| self.expr(arg)).collect();
        let values: Vec<Option<Value>> = meanings.iter().zip(args).map(|(meaning, arg)| self.value(meaning, arg.place)).collect();
        let Some(values) = values.into_iter().collect::<Option<Vec<Value>>>() else { return };
        let shown: Vec<Meaning> = values.iter().map(|value| Meaning::Value(*value)).collect();
        let shape = match self.common_shape(&shown.iter().collect::<Vec<_>>()) {
            Ok(shape) => shape,
            Err((x, y)) => {
                let found: Vec<String> = meanings.iter().map(|meaning| self.describe(meaning)).collect();
                let help = shapes_help(&x, &y, "print tiles of other shapes by a `device_print!` of their own");
                self.errors.push_help(place, format!("the values of `device_print!` differ in shape: {}", found.join(", ")), help);
                return;
            }
        };
        let spread: Option<Vec<Value>> = values.iter().zip(args).map(|(value, arg)| self.with_shape(*value, &shape, arg.place)).collect();
        let Some(values) = spread else { return };
        let site = self.prints;
        self.prints += 1;
        self.append(Op::Print { values, format: text.to_string(), site }, place);
    }
}
