//! Text as a listing: recursive descent over tokens. Calls in calls are counted, so the depth of the text takes no stack.

use std::collections::HashSet;
use std::ops::Range;

use kernel_runtime::ops::parts::IntegerType;
use kernel_runtime::{Dim, Dtype, Site};

use super::cursor::{Parsed, Parser};
use super::lexer::{self, Kind};
use super::types::Unresolved;
use super::{
    Argument, CallArgument, CallText, ConstantLine, ExternText, Input, LaunchHead, LaunchText, Line, Listing, MOST_NESTED, NameKind, OnCpu,
    Operation, Section, Span, TextError,
};

/// The most named dims of a text.
const MOST_DIMS: usize = 1024;

impl Listing {
    /// Reads the text of a graph. `Display` writes a text that is read to an equal listing.
    ///
    /// # Errors
    /// The first mistake in the syntax, or in an expression of dims.
    pub fn parse(text: &str) -> Result<Listing, TextError> {
        let tokens = lexer::tokens(text).map_err(|(span, message)| TextError::new(text, span, message, None))?;
        Parser { text, tokens, at: 0, dims: Vec::new(), dim_names: HashSet::new() }.graph()
    }
}

impl Parser<'_> {
    fn graph(mut self) -> Parsed<Listing> {
        self.skip_lines();
        self.keyword("graph", "a graph begins with `graph` and its name")?;
        let name = self.symbol("the name of the graph")?;
        self.expect("(")?;
        let mut inputs: Vec<(String, Span, Unresolved)> = Vec::new();
        while !self.accept(")") {
            if !inputs.is_empty() {
                self.expect_one_of(",", ")")?;
            }
            let (span, name) = (self.span(), self.word("the name of an input, or `)`")?);
            self.expect(":")?;
            inputs.push((name, span, self.unresolved_type()?));
        }
        let mut dims = Vec::new();
        if self.accept_word("where") {
            dims.push(self.declaration()?);
            while self.accept(",") {
                dims.push(self.declaration()?);
            }
        }
        self.end_of_line()?;
        let inputs = inputs.into_iter().map(|(name, span, ty)| Ok(Input { name, ty: self.resolved(ty)?, span }));
        let inputs = inputs.collect::<Parsed<Vec<_>>>()?;
        let program = self.section()?;
        self.skip_lines();
        let mut on_cpu = OnCpu::Same;
        if self.accept_word("on") {
            self.keyword("cpu", "the program for another device is `on cpu`")?;
            self.end_of_line()?;
            on_cpu = OnCpu::Section(self.section()?);
        } else if self.accept_word("not") {
            self.keyword("on", "a reason follows `not on cpu:`")?;
            self.keyword("cpu", "a reason follows `not on cpu:`")?;
            self.expect(":")?;
            on_cpu = OnCpu::Not(self.quoted("the reason in quotes")?);
            self.end_of_line()?;
        }
        self.skip_lines();
        if self.kind() != Kind::End {
            return Err(self.expected("`on cpu`, `not on cpu` or the end"));
        }
        Ok(Listing { name, inputs, dims, program, on_cpu, source: self.text.into() })
    }

    /// `batch in 1..=1024`
    fn declaration(&mut self) -> Parsed<(Dim, Span)> {
        let (span, name) = (self.span(), self.word("the name of a dim")?);
        if self.dims.len() == MOST_DIMS {
            return Err(self.error(span, format!("the graph has more than {MOST_DIMS} dims"), None));
        }
        self.keyword("in", "the range of a dim is written `n in 0..=8`")?;
        let low = self.integer()?;
        self.expect("..=")?;
        let dim = Dim::declared_at(&name, low..=self.integer()?, site(span));
        self.checked(&dim, span)?;
        if !self.dim_names.insert(name.clone()) {
            let help = "declare each dim once".to_owned();
            return Err(self.error(span, format!("dim `{name}` is declared twice"), Some(help)));
        }
        self.dims.push(dim.clone());
        Ok((dim, span))
    }

    /// Constants, lines and `return`.
    fn section(&mut self) -> Parsed<Section> {
        self.skip_lines();
        let (first, mut constants, mut lines) = (self.span(), Vec::new(), Vec::new());
        while self.kind() == Kind::Constant {
            constants.push(self.constant()?);
            self.skip_lines();
        }
        // The indices of the calls that contain the next line.
        let mut open: Vec<usize> = Vec::new();
        loop {
            self.skip_lines();
            if self.accept("}") {
                let Some(call) = open.pop() else {
                    self.at -= 1;
                    return Err(self.error(self.span(), "`}` closes no call".to_owned(), None));
                };
                let count = lines.len() - call - 1;
                if let Some(Line { operation: Operation::Call(call), .. }) = lines.get_mut(call) {
                    call.contents = Some(count);
                }
                self.end_of_line()?;
                continue;
            }
            // `return::twice(..)` is a call.
            if self.is_word("return") && self.tokens[self.at + 1].kind != Kind::Sign("::") {
                let span = self.span();
                self.at += 1;
                if let Some(Line { span: call, .. }) = open.last().map(|call| &lines[*call]) {
                    let message = format!("the call in line {} is not closed", call.line);
                    return Err(self.error(span, message, Some("end its lines with `}`".to_owned())));
                }
                let outputs = if matches!(self.kind(), Kind::Newline | Kind::End) { Vec::new() } else { self.names()? };
                self.end_of_line()?;
                return Ok(Section { constants, lines, outputs, span: first });
            }
            let (line, opens) = self.line()?;
            if opens {
                if open.len() == MOST_NESTED {
                    return Err(self.error(line.span, format!("more than {MOST_NESTED} calls contain each other"), None));
                }
                open.push(lines.len());
            }
            lines.push(line);
            self.end_of_line()?;
        }
    }

    /// `@layer.weight = parameter : f32[64]`
    fn constant(&mut self) -> Parsed<ConstantLine> {
        let name = self.name("the name of a constant")?;
        self.expect("=")?;
        let is_parameter = self.is_word("parameter");
        if !is_parameter && !self.is_word("constant") {
            return Err(self.expected("`constant` or `parameter`"));
        }
        self.at += 1;
        self.expect(":")?;
        let ty = self.ty()?;
        self.end_of_line()?;
        Ok(ConstantLine { name, is_parameter, ty })
    }

    /// An operation, and whether lines in braces follow.
    fn line(&mut self) -> Parsed<(Line, bool)> {
        let results = match self.kind() {
            Kind::Local => {
                let names = self.names()?;
                self.expect("=")?;
                names
            }
            _ => Vec::new(),
        };
        if let Some(name) = results.iter().find(|name| !matches!(name.kind, NameKind::Local(_))) {
            let help = Some("the name of a result begins with `%`".to_owned());
            return Err(self.error(name.span, format!("`{name}` cannot be a result"), help));
        }
        let span = self.span();
        let mut operation = self.operation()?;
        let mut types = Vec::new();
        let colon = self.span();
        if self.accept(":") {
            types.push(self.ty()?);
            while self.accept(",") {
                types.push(self.ty()?);
            }
        }
        if types.len() != results.len() {
            let count = |count: usize, what: &str| if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") };
            let message = format!("the line has {} and {}", count(results.len(), "result"), count(types.len(), "type"));
            return Err(self.error(colon, message, Some("write a type for each result: `%0 = alloc : f32[n]`".to_owned())));
        }
        if let Operation::Call(CallText { flops, .. }) | Operation::Extern(ExternText { flops, .. }) = &mut operation
            && self.accept_word("flops")
        {
            *flops = Some(self.dim()?);
        }
        let opens = matches!(operation, Operation::Call(_)) && self.accept("{");
        Ok((Line { results, types, operation, span }, opens))
    }

    fn operation(&mut self) -> Parsed<Operation> {
        let first = self.word("an operation, such as `alloc`, `launch` or the name of an op, or `return`")?;
        if self.is_sign("::") {
            return Ok(Operation::Call(self.call(first)?));
        }
        match &*first {
            "alloc" => Ok(Operation::Alloc { zeroed: false }),
            "zeros" => Ok(Operation::Alloc { zeroed: true }),
            "view" => {
                let of = self.name("a value")?;
                self.keyword("at", "the first element of a view follows `at`")?;
                Ok(Operation::View { of, offset: self.dim()? })
            }
            "launch" => Ok(Operation::Launch(self.launch()?)),
            "extern" => Ok(Operation::Extern(self.extern_call()?)),
            _ => {
                self.at -= 1;
                let help =
                    "the operations are `alloc`, `zeros`, `view`, `launch`, `extern`, and calls of ops, such as `mylib::silu(x = %0)`";
                Err(self.error(self.span(), format!("`{first}` is no operation"), Some(help.to_owned())))
            }
        }
    }

    /// `silu_elements<T = f32> [cdiv(n, 64), 1, 1] (x = %x, n = n)`
    fn launch(&mut self) -> Parsed<LaunchText> {
        let kernel = self.symbol("the name of a kernel")?;
        let hash = if self.accept("#") { Some(self.hash()?) } else { None };
        let mut generics = Vec::new();
        if self.accept("<") {
            loop {
                let name = self.symbol("the name of a type or of a constant")?;
                self.expect("=")?;
                generics.push((name, self.run_of_tokens("a value", &[",", ">"])?));
                if self.accept(">") {
                    break;
                }
                self.expect_one_of(",", ">")?;
            }
        }
        self.expect("[")?;
        let x = self.dim()?;
        self.expect(",")?;
        let y = self.dim()?;
        self.expect(",")?;
        let grid = [x, y, self.dim()?];
        self.expect("]")?;
        let mut configurations = 1;
        if self.accept_word("of") {
            let span = self.span();
            configurations = usize::try_from(self.integer()?).ok().filter(|count| *count > 0).unwrap_or(0);
            if configurations == 0 {
                return Err(self.error(span, "a launch has at least one configuration".to_owned(), None));
            }
            self.keyword("configurations", "the number of configurations is written `of 4 configurations`")?;
        }
        Ok(LaunchText { head: LaunchHead { kernel, hash, generics, grid, configurations }, args: self.arguments()? })
    }

    /// `mylib::sort(x = %0, descending = true)`
    fn extern_call(&mut self) -> Parsed<ExternText> {
        let namespace = self.word("the name of an op")?;
        Ok(ExternText { op: self.op_name(namespace)?, args: self.arguments()?, flops: None })
    }

    /// The arguments of a launch or of an opaque op.
    fn arguments(&mut self) -> Parsed<Vec<(String, Argument, Span)>> {
        self.expect("(")?;
        let mut args = Vec::new();
        while !self.accept(")") {
            if !args.is_empty() {
                self.expect_one_of(",", ")")?;
            }
            let (span, name) = (self.span(), self.symbol("the name of a parameter, or `)`")?);
            self.expect("=")?;
            args.push((name, self.argument()?, span));
        }
        Ok(args)
    }

    fn argument(&mut self) -> Parsed<Argument> {
        if matches!(self.kind(), Kind::Local | Kind::Constant) {
            return Ok(Argument::Tensor(self.name("a value")?));
        }
        if self.accept("[") {
            let mut names = Vec::new();
            while !self.accept("]") {
                if !names.is_empty() {
                    self.expect_one_of(",", "]")?;
                }
                names.push(self.name("a value, or `]`")?);
            }
            return Ok(Argument::List(names));
        }
        let (start, text) = (self.at, self.run_of_tokens("a value, a number or an expression of dims", &[",", ")"])?);
        if self.literal(start..self.at) {
            return Ok(Argument::Scalar { text, dim: None, ty: None });
        }
        self.at = start;
        let dim = self.dim()?;
        let mut ty = None;
        if self.accept_word("as") {
            let (span, name) = (self.span(), self.word("a type of integers")?);
            ty = IntegerType::ALL.into_iter().find(|ty| ty.name() == name);
            if ty.is_none() {
                let help = Some("the types are `i32`, `u32`, `i64`, `u64`, `isize` and `usize`".to_owned());
                return Err(self.error(span, format!("`{name}` is no type of an expression of dims"), help));
            }
        }
        Ok(Argument::Scalar { text: dim.to_string(), dim: Some(dim), ty })
    }

    /// Whether the tokens are a number, a text, or one of the words for a value, and no dim.
    fn literal(&self, tokens: Range<usize>) -> bool {
        let tokens = match &self.tokens[tokens] {
            [sign, rest @ ..] if sign.kind == Kind::Sign("-") => rest,
            tokens => tokens,
        };
        match tokens {
            [token] if matches!(token.kind, Kind::Number | Kind::Text) => true,
            [token] if token.kind == Kind::Word => {
                let word = &self.text[token.bytes.clone()];
                let is_value = matches!(word, "true" | "false" | "inf" | "NaN" | "None") || word.parse::<Dtype>().is_ok();
                is_value && !self.dim_names.contains(word)
            }
            _ => false,
        }
    }

    /// `mylib::silu(x = %0)`, after the first word.
    fn call(&mut self, namespace: String) -> Parsed<CallText> {
        let op = self.op_name(namespace)?;
        self.expect("(")?;
        let mut args = Vec::new();
        while !self.accept(")") {
            if !args.is_empty() {
                self.expect_one_of(",", ")")?;
            }
            let (span, name) = (self.span(), self.symbol("the name of an argument, or `)`")?);
            self.expect("=")?;
            args.push((name, self.call_argument()?, span));
        }
        Ok(CallText { op, args, flops: None, contents: None })
    }

    /// `mylib::silu`, after the first word.
    fn op_name(&mut self, namespace: String) -> Parsed<String> {
        let mut op = namespace;
        while self.accept("::") {
            op = format!("{op}::{}", self.word("the name of an op")?);
        }
        Ok(op)
    }

    fn call_argument(&mut self) -> Parsed<CallArgument> {
        if !self.accept("[") {
            return self.single_argument(&[",", ")"]);
        }
        let mut values = Vec::new();
        while !self.accept("]") {
            if !values.is_empty() {
                self.expect_one_of(",", "]")?;
            }
            values.push(self.single_argument(&[",", "]"])?);
        }
        Ok(CallArgument::List(values))
    }

    fn single_argument(&mut self, ends: &[&str]) -> Parsed<CallArgument> {
        match self.kind() {
            Kind::Local | Kind::Constant => Ok(CallArgument::Tensor(self.name("a value")?)),
            _ if self.is_word("unused") => Ok(CallArgument::Tensor(self.name("a value")?)),
            _ => Ok(CallArgument::Text(self.run_of_tokens("a value", ends)?)),
        }
    }
}

/// The site of a part of a text.
pub(super) fn site(span: Span) -> Site {
    Site::of_text(&format!("text:{}:{}", span.line, span.column))
}
