//! Calls of opaque ops: arguments for the types of a schema.
//!
//! A text has the name of an op and the names of its parameters. The types are those of the op's schema: a word such as `f32` is a dtype for one parameter and a dim for another.

use kernel_runtime::Dim;
use kernel_runtime::ops::parts::Schema;
use kernel_runtime::ops::{self, ExternArg, ExternCall};

use super::bind::{Bound, Builder, Cx};
use super::lexer::unquoted;
use super::print::symbol;
use super::{Argument, ExternText, Line};

impl Cx<'_> {
    /// The call, whose op this process has.
    pub(super) fn extern_call(&self, to: &Builder, line: &Line, text: &ExternText) -> Bound<ExternCall> {
        let schema = self.schema(line, &text.op)?;
        let params = Schema::parse(schema).map(|schema| schema.params).unwrap_or_default();
        if !params.iter().map(|(_, name)| *name).eq(text.args.iter().map(|(name, ..)| &**name)) {
            let names: Vec<String> = params.iter().map(|(_, name)| symbol(name)).collect();
            let message = format!("`{}` has the parameters `({})`, in this order", text.op, names.join(", "));
            let span = text.args.first().map_or(line.span, |(.., span)| *span);
            return Err(self.error(span, message, Some(&format!("its schema is `{schema}`"))));
        }
        let mut args = Vec::with_capacity(params.len());
        for ((ty, _), (name, argument, span)) in params.iter().zip(&text.args) {
            let message = || format!("`{}`: `{}` cannot be `{argument}`: its type is `{ty}`", text.op, symbol(name));
            args.push(self.extern_arg(to, ty, argument)?.ok_or_else(|| self.error(*span, message(), None))?);
        }
        let call = ExternCall::of_parts(schema.to_owned(), args).map_err(|error| self.of_message(line.span, &error.to_string()))?;
        let mut call = call.with_flops(text.flops.clone());
        call.resolve().map_err(|missing| {
            let help = "link the crate that defines it (`use mylib as _;`), in the version that recorded the graph";
            self.error(line.span, format!("this process lacks an opaque op that the text calls: {missing}"), Some(help))
        })?;
        Ok(call)
    }

    /// The schema of an opaque op: that of a plan of the environment, or of this process.
    fn schema(&self, line: &Line, op: &str) -> Bound<&str> {
        if let Some(schema) = self.environment.opaque_schema(op) {
            return Ok(schema);
        }
        let def = ops::get(op).map_err(|error| self.of_message(line.span, &error.to_string()))?;
        if !def.is_opaque {
            let help = format!("a call of such an op has no `extern`, and its operations in braces: `{op}(..) : f32[n] {{`");
            return Err(self.error(line.span, format!("`{op}` is not opaque"), Some(&help)));
        }
        Ok(def.schema)
    }

    /// The argument for a parameter of this type. `None` if the type has no such argument.
    fn extern_arg(&self, to: &Builder, ty: &str, argument: &Argument) -> Bound<Option<ExternArg>> {
        let arg = match argument {
            Argument::Tensor(name) => {
                let value = self.value(to, name)?;
                [ExternArg::Tensor(value), ExternArg::Written(value)].into_iter().find(|arg| arg.fits(ty))
            }
            Argument::List(names) => {
                Some(ExternArg::Tensors(names.iter().map(|name| self.value(to, name)).collect::<Bound<_>>()?)).filter(|arg| arg.fits(ty))
            }
            Argument::Scalar { ty: Some(_), .. } => None,
            Argument::Scalar { text, dim, ty: None } => match ty {
                "SymInt" => dim.clone().or_else(|| text.parse::<i64>().ok().map(Dim::from)).map(ExternArg::Dim),
                "str" => unquoted(text).map(ExternArg::Str),
                _ => ExternArg::of_text(ty, text),
            },
        };
        Ok(arg)
    }
}
