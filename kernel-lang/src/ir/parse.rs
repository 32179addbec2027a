//! Parser of the text form. It parses the output of [`super::print`] to an equal kernel.

use std::collections::{HashMap, HashSet};

use crate::dtype::Dtype;
use crate::ir::arena::{Region, Value};
use crate::ir::constexpr::{ConstBinary, ConstExpr, ConstUnary, TARGET};
use crate::ir::fields::{AttributeValue, Parts};
use crate::ir::function::{ConstParam, Function, MAX_NESTING, TypeParam};
use crate::ir::lexer::{self, ParseError, Token};
use crate::ir::ops::Op;
use crate::ir::requirement::Requirement;
use crate::ir::scratch::Scratch;
use crate::ir::type_constant::TypeConstant;
use crate::ir::types::{Elem, Type};
use crate::layout::Layout;
use crate::location::{Loc, Name};

/// Parses the text of one kernel. Types are read, not checked: [`super::verify`] checks them.
///
/// # Errors
/// The first syntax error.
pub fn parse(text: &str) -> Result<Function, ParseError> {
    let mut parser = Parser {
        tokens: lexer::tokens(text)?,
        at: 0,
        func: Function::new(""),
        values: HashMap::new(),
        indices: HashSet::new(),
        regions: 0,
        parts: 0,
    };
    parser.function()?;
    parser.expect_end()?;
    Ok(parser.func)
}

struct Parser {
    tokens: Vec<(Token, u32)>,
    at: usize,
    func: Function,
    values: HashMap<String, Value>,
    /// The indices of the enclosing and earlier `static_for`s: constants in their bodies.
    indices: HashSet<String>,
    /// The nesting depth of open regions.
    regions: usize,
    /// The nesting depth of the constant being parsed.
    parts: usize,
}

/// An op without its regions.
struct Head {
    line: u32,
    results: Vec<String>,
    name: String,
    parts: Parts,
}

type Parsed<T> = Result<T, ParseError>;

impl Parser {
    fn peek(&self) -> &Token {
        &self.tokens[self.at].0
    }

    fn next(&mut self) -> Token {
        let token = self.tokens[self.at].0.clone();
        self.at = (self.at + 1).min(self.tokens.len() - 1);
        token
    }

    fn error<T>(&self, message: impl Into<String>) -> Parsed<T> {
        Err(ParseError::new(self.tokens[self.at].1, message))
    }

    fn accept(&mut self, sign: &str) -> bool {
        let found = matches!(self.peek(), Token::Sign(found) if *found == sign);
        self.at += usize::from(found);
        found
    }

    fn accept_word(&mut self, word: &str) -> bool {
        let found = matches!(self.peek(), Token::Word(found) if found == word);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, sign: &str) -> Parsed<()> {
        if self.accept(sign) { Ok(()) } else { self.error(format!("`{sign}` is missing before {}", describe(self.peek()))) }
    }

    fn expect_end(&mut self) -> Parsed<()> {
        if *self.peek() == Token::End { Ok(()) } else { self.error(format!("{} stands after the kernel", describe(self.peek()))) }
    }

    fn word(&mut self) -> Parsed<String> {
        match self.next() {
            Token::Word(word) => Ok(word),
            other => self.error(format!("a word is missing before {}", describe(&other))),
        }
    }

    fn int(&mut self) -> Parsed<i128> {
        match self.next() {
            Token::Int(int) => Ok(int),
            other => self.error(format!("a number is missing before {}", describe(&other))),
        }
    }

    fn function(&mut self) -> Parsed<()> {
        if !self.accept_word("kernel") {
            return self.error("a kernel begins with `kernel @name`");
        }
        self.expect("@")?;
        self.func.name = self.word()?.into();
        if self.accept("<") {
            while !self.accept(">") {
                self.generic()?;
                self.accept(",");
            }
        }
        self.expect("(")?;
        while !self.accept(")") {
            let Token::Value(name) = self.next() else { return self.error("a parameter begins with `%`") };
            self.expect(":")?;
            let ty = self.ty()?;
            let value = self.func.add_param(name.as_str(), ty);
            self.define(name, value)?;
            self.accept(",");
        }
        while self.accept_word("file") {
            let Token::Text(file) = self.next() else { return self.error("a file is a quoted text") };
            self.func.files.push(file.into());
        }
        self.func.unchecked = self.accept_word("unchecked");
        self.func.contract = self.accept_word("contract");
        if self.accept_word("requires") {
            self.requirements()?;
        }
        self.expect("{")?;
        let body = self.func.body;
        self.insts(body)
    }

    fn requirements(&mut self) -> Parsed<()> {
        self.expect("(")?;
        while !self.accept(")") {
            let word = self.word()?;
            match Requirement::of_name(&word) {
                Some(requirement) if !self.func.requires.contains(&requirement) => self.func.requires.push(requirement),
                _ => return self.error(format!("`{word}` is no requirement, or is given twice")),
            }
            self.accept(",");
        }
        Ok(())
    }

    fn generic(&mut self) -> Parsed<()> {
        let is_const = self.accept_word("const");
        let name: Name = self.word()?.into();
        self.expect(":")?;
        if is_const {
            let dtype = self.dtype()?;
            self.func.consts.push(ConstParam { name, dtype });
            return Ok(());
        }
        let mut choices = vec![self.dtype()?];
        while self.accept("|") {
            choices.push(self.dtype()?);
        }
        self.func.types.push(TypeParam { name, choices });
        Ok(())
    }

    fn dtype(&mut self) -> Parsed<Dtype> {
        let word = self.word()?;
        word.parse().or_else(|_| self.error(format!("`{word}` is not a dtype")))
    }

    fn elem(&mut self) -> Parsed<Elem> {
        let word = self.word()?;
        if let Ok(dtype) = word.parse::<Dtype>() {
            return Ok(Elem::Dtype(dtype));
        }
        match self.func.types.iter().find(|param| *param.name == *word) {
            Some(param) => Ok(Elem::Param(param.name.clone())),
            None => self.error(format!("`{word}` is not a type")),
        }
    }

    fn ty(&mut self) -> Parsed<Type> {
        for (word, mutable) in [("ptr", false), ("ptr_mut", true)] {
            if self.accept_word(word) {
                self.expect("<")?;
                let elem = self.elem()?;
                self.expect(">")?;
                return Ok(Type::Pointer { elem, mutable });
            }
        }
        let is_shared = self.accept_word("shared");
        if !is_shared && !self.accept_word("tile") {
            return Ok(Type::scalar(self.elem()?));
        }
        self.expect("<")?;
        let elem = self.elem()?;
        self.expect(",")?;
        self.expect("[")?;
        let mut shape = Vec::new();
        while !self.accept("]") {
            shape.push(self.constant()?);
            self.accept(",");
        }
        if is_shared {
            self.expect(",")?;
            let Token::Int(contiguous @ 0..=1) = self.next() else {
                return self.error("a block in shared memory has neighbours along axis 0 or 1");
            };
            self.expect(">")?;
            return Ok(Type::Shared { elem, shape, contiguous: contiguous as u32 });
        }
        self.expect(">")?;
        Ok(Type::tile(elem, shape))
    }

    /// The optional layout after the type of a tile, parsed by [`Layout`] itself.
    fn layout(&mut self) -> Parsed<Option<Layout>> {
        if !matches!(self.peek(), Token::Word(word) if word == "layout") {
            return Ok(None);
        }
        let mut text = String::new();
        loop {
            match self.next() {
                Token::Word(word) => text += &word,
                Token::Int(int) => text += &int.to_string(),
                Token::Sign(">") => break,
                Token::Sign(sign) => text += sign,
                other => return self.error(format!("{} stands in a layout", describe(&other))),
            }
        }
        text.push('>');
        text.parse().map(Some).or_else(|error| self.error(format!("the layout `{text}`: {error}")))
    }

    /// A literal, a parameter, a constant of a type parameter, a parenthesised operation or `if`, or a call of `min`, `max`, `cdiv` or of an integer type.
    fn constant(&mut self) -> Parsed<ConstExpr> {
        // An expression of that depth ends in a leaf, so the limit is exclusive.
        if self.parts > ConstExpr::MOST_DEPTH {
            return self.error(format!("the limit is {} parts of a constant inside of each other", ConstExpr::MOST_DEPTH));
        }
        self.parts += 1;
        let constant = self.constant_inside();
        self.parts -= 1;
        constant
    }

    fn constant_inside(&mut self) -> Parsed<ConstExpr> {
        match self.next() {
            Token::Int(int) => Ok(ConstExpr::Int(int)),
            Token::Float(float) => Ok(ConstExpr::Float(float)),
            Token::Sign("-") => match self.next() {
                Token::Int(int) => Ok(ConstExpr::Int(-int)),
                Token::Float(float) => Ok(ConstExpr::Float(-float)),
                other => self.error(format!("a number is missing before {}", describe(&other))),
            },
            Token::Word(word) if word == "true" || word == "false" => Ok(ConstExpr::Bool(word == "true")),
            Token::Word(word) if *self.peek() == Token::Sign("(") => {
                if let Some(dtype) = word.parse::<Dtype>().ok().filter(|dtype| dtype.is_int()) {
                    self.expect("(")?;
                    let operand = self.constant()?;
                    self.expect(")")?;
                    return Ok(ConstExpr::Unary(ConstUnary::Wrap(dtype), Box::new(operand)));
                }
                let Some(op) = ConstBinary::ALL.iter().find(|op| op.text() == word) else {
                    return self.error(format!("`{word}` is not a function of constants"));
                };
                self.expect("(")?;
                let lhs = self.constant()?;
                self.expect(",")?;
                let rhs = self.constant()?;
                self.expect(")")?;
                Ok(ConstExpr::Binary(*op, Box::new(lhs), Box::new(rhs)))
            }
            Token::Word(word) if *self.peek() == Token::Sign("::") => self.of_type(&word),
            Token::Word(word) => match self.func.consts.iter().find(|param| *param.name == *word) {
                Some(param) => Ok(ConstExpr::Param(param.name.clone())),
                // `(T == f32)` compares types.
                None if word == TARGET
                    || word.parse::<Dtype>().is_ok()
                    || self.indices.contains(&word)
                    || self.func.types.iter().any(|param| *param.name == *word) =>
                {
                    Ok(ConstExpr::Param(word.as_str().into()))
                }
                None => self.error(format!("`{word}` is not a constant parameter")),
            },
            Token::Sign("(") => {
                let expr = self.operation()?;
                self.expect(")")?;
                Ok(expr)
            }
            other => self.error(format!("a constant is missing before {}", describe(&other))),
        }
    }

    /// `T::MAX`.
    fn of_type(&mut self, name: &str) -> Parsed<ConstExpr> {
        self.expect("::")?;
        let Some(param) = self.func.types.iter().find(|param| *param.name == *name).map(|param| param.name.clone()) else {
            return self.error(format!("`{name}` is not a type parameter"));
        };
        match self.next() {
            Token::Word(word) if let Some(constant) = TypeConstant::named(&word) => Ok(ConstExpr::OfType(param, constant)),
            other => self.error(format!("the name of a constant is missing before {}", describe(&other))),
        }
    }

    fn operation(&mut self) -> Parsed<ConstExpr> {
        if *self.peek() == Token::Word("if".to_string()) {
            self.next();
            let cond = self.constant()?;
            self.expect("{")?;
            let then = self.constant()?;
            self.expect("}")?;
            if self.next() != Token::Word("else".to_string()) {
                return self.error("`else` is missing");
            }
            self.expect("{")?;
            let other = self.constant()?;
            self.expect("}")?;
            return Ok(ConstExpr::If(Box::new([cond, then, other])));
        }
        for (sign, op) in [("-", ConstUnary::Neg), ("!", ConstUnary::Not)] {
            if self.accept(sign) {
                return Ok(ConstExpr::Unary(op, Box::new(self.constant()?)));
            }
        }
        let lhs = self.constant()?;
        let Token::Sign(sign) = self.next() else { return self.error("an operator is missing") };
        let Some(op) = ConstBinary::ALL.iter().find(|op| op.text() == sign) else {
            return self.error(format!("`{sign}` is not an operator of constants"));
        };
        let rhs = self.constant()?;
        Ok(ConstExpr::Binary(*op, Box::new(lhs), Box::new(rhs)))
    }

    fn define(&mut self, name: String, value: Value) -> Parsed<()> {
        if self.values.contains_key(&name) {
            return self.error(format!("`%{name}` is defined twice"));
        }
        self.values.insert(name, value);
        Ok(())
    }

    fn operand(&mut self) -> Parsed<Value> {
        let Token::Value(name) = self.next() else { return self.error("a value is missing") };
        match self.values.get(&name) {
            Some(value) => Ok(*value),
            None => self.error(format!("`%{name}` is not defined before its use")),
        }
    }

    /// The ops up to the closing brace.
    fn insts(&mut self, region: Region) -> Parsed<()> {
        if self.regions > MAX_NESTING {
            return self.error(format!("the limit is {MAX_NESTING} regions inside of each other"));
        }
        self.regions += 1;
        while !self.accept("}") {
            self.inst(region)?;
        }
        self.regions -= 1;
        Ok(())
    }

    /// An op with its regions. Nested ops recurse into this function, so its stack frame is kept small.
    fn inst(&mut self, region: Region) -> Parsed<()> {
        let mut head = self.head()?;
        while self.accept("(") {
            let inner = self.func.add_region();
            self.region_params(inner)?;
            self.insts(inner)?;
            head.parts.regions.push(inner);
        }
        self.finish(region, *head)
    }

    /// The names of an op's results, its name and its operands.
    fn head(&mut self) -> Parsed<Box<Head>> {
        let mut results = Vec::new();
        while let Token::Value(name) = self.peek().clone() {
            self.at += 1;
            results.push(name);
            self.accept(",");
        }
        if !results.is_empty() {
            self.expect("=")?;
        }
        let line = self.tokens[self.at].1;
        let name = self.word()?;
        let parts = self.operands(line)?;
        Ok(Box::new(Head { line, results, name, parts }))
    }

    /// The tail after an op's regions; appends the op.
    fn finish(&mut self, region: Region, head: Head) -> Parsed<()> {
        let Head { line, results, name, mut parts } = head;
        let scratch = Scratch::parse(&mut parts).map_err(|message| ParseError::new(line, message))?;
        let op = Op::from_parts(&name, parts).map_err(|message| ParseError::new(line, message))?;
        let (mut types, mut layouts) = (Vec::new(), Vec::new());
        if self.accept(":") {
            loop {
                types.push(self.ty()?);
                layouts.push(self.layout()?);
                if !self.accept(",") {
                    break;
                }
            }
        }
        if types.len() != results.len() {
            return self.error(format!("`{name}` has {} results and {} types", results.len(), types.len()));
        }
        let loc = if self.accept("@") { self.loc()? } else { Loc::NONE };
        let inst = self.func.append(region, op, types, loc);
        if scratch.is_some() {
            self.func.scratch[inst] = scratch;
        }
        let values = self.func.inst(inst).results.clone();
        values.iter().zip(layouts).for_each(|(value, layout)| self.func.layouts[*value] = layout);
        results.into_iter().zip(values).try_for_each(|(name, value)| self.define(name, value))
    }

    /// The operands after the name of an op. The first one is on the same line as the name, because an op may have none.
    fn operands(&mut self, line: u32) -> Parsed<Parts> {
        let mut parts = Parts::default();
        while matches!(self.peek(), Token::Value(_)) && (!parts.operands.is_empty() || self.tokens[self.at].1 == line) {
            parts.operands.push(self.operand()?);
            if !self.accept(",") {
                break;
            }
        }
        if self.accept("{") {
            while !self.accept("}") {
                self.attribute(&mut parts)?;
                self.accept(",");
            }
        }
        Ok(parts)
    }

    /// The parameters of a region, and the brace after them.
    fn region_params(&mut self, region: Region) -> Parsed<()> {
        while !self.accept(")") {
            let Token::Value(name) = self.next() else { return self.error("a parameter begins with `%`") };
            self.expect(":")?;
            let ty = self.ty()?;
            let value = self.func.add_region_param(region, ty);
            self.func.layouts[value] = self.layout()?;
            self.define(name, value)?;
            self.accept(",");
        }
        self.expect("{")
    }

    fn attribute(&mut self, parts: &mut Parts) -> Parsed<()> {
        let name = self.word()?;
        self.expect("=")?;
        if let Token::Text(text) = self.peek().clone() {
            self.at += 1;
            if name == "index" {
                self.indices.insert(text.clone());
            }
            parts.attributes.push((name, AttributeValue::Text(text)));
        } else if matches!(self.peek(), Token::Value(_)) {
            let value = self.operand()?;
            parts.named.push((name, value));
        } else if self.accept("[") {
            let mut list = Vec::new();
            while !self.accept("]") {
                list.push(self.constant()?);
                self.accept(",");
            }
            parts.attributes.push((name, AttributeValue::List(list)));
        } else {
            let expr = self.constant()?;
            parts.attributes.push((name, AttributeValue::Expr(expr)));
        }
        Ok(())
    }

    fn loc(&mut self) -> Parsed<Loc> {
        let mut numbers = vec![self.int()?];
        while self.accept(":") {
            numbers.push(self.int()?);
        }
        let small = |number: i128| u32::try_from(number).or_else(|_| self.error("a position is out of range"));
        match numbers[..] {
            [line, column] => Ok(Loc::new(small(line)?, small(column)?)),
            [file, line, column] => {
                let file = u16::try_from(file).or_else(|_| self.error("a position is out of range"))?;
                Ok(Loc { file, line: small(line)?, column: small(column)? })
            }
            _ => self.error("a position is `@line:column`"),
        }
    }
}

fn describe(token: &Token) -> String {
    match token {
        Token::Word(word) => format!("`{word}`"),
        Token::Value(name) => format!("`%{name}`"),
        Token::Int(int) => format!("`{int}`"),
        Token::Float(float) => format!("`{float:?}`"),
        Token::Text(text) => format!("{text:?}"),
        Token::Sign(sign) => format!("`{sign}`"),
        Token::End => "the end".to_string(),
    }
}
