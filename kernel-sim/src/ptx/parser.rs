//! The parser of modules, functions and statements, by recursive descent.

use super::cursor::Cursor;
use super::lexer::Kind;
use super::operand::{ELEMENTS, integer, operand};
use super::variable::{attribute, count, head, parameter, space, variables};
use super::{Function, Instruction, Linkage, Module, PtxError, SourceLine, Statement};

/// Parses a module.
///
/// The parser skips `.section` (debug information) and `.pragma`. Everything else becomes part of the tree or is an error.
pub fn parse(text: &str) -> Result<Module, PtxError> {
    let cursor = &mut Cursor::new(text)?;
    let mut module = Module { version: version(cursor)?, target: target(cursor)?, ..Module::default() };
    if cursor.accept_dotted("address_size") {
        let token = cursor.peek();
        if integer(cursor)? != 64 {
            return Err(cursor.error_at(token, "the simulator knows addresses of 64 bits only"));
        }
    }
    while cursor.peek().kind != Kind::End {
        item(cursor, &mut module)?;
    }
    Ok(module)
}

/// `.version 8.7`
fn version(cursor: &mut Cursor<'_>) -> Result<(u32, u32), PtxError> {
    if !cursor.accept_dotted("version") {
        return Err(cursor.expected("`.version`, with which a module begins"));
    }
    let token = cursor.peek();
    let text = cursor.take(Kind::Number, "a version")?;
    let parsed = text.split_once('.').and_then(|(major, minor)| Some((major.parse().ok()?, minor.parse().ok()?)));
    parsed.ok_or_else(|| cursor.error_at(token, "a version is written `.version major.minor`"))
}

/// `.target sm_90a, debug`
fn target(cursor: &mut Cursor<'_>) -> Result<String, PtxError> {
    if !cursor.accept_dotted("target") {
        return Err(cursor.expected("`.target`, which comes after `.version`"));
    }
    let first = cursor.peek();
    let mut target = None;
    loop {
        let word = cursor.take(Kind::Name, "a target")?;
        if word.starts_with("sm_") {
            target = Some(word.to_owned());
        }
        if !cursor.accept(",") {
            return target.ok_or_else(|| cursor.error_at(first, "a target such as `sm_90a` is missing"));
        }
    }
}

/// Parses a directive of a module.
fn item(cursor: &mut Cursor<'_>, module: &mut Module) -> Result<(), PtxError> {
    let token = cursor.peek();
    if token.is("@") && cursor.peek_after(1).is("@") {
        // `@@DWARF ..`: debug information of old compilers, on one line.
        let line = cursor.position().line;
        while cursor.peek().kind != Kind::End && cursor.position().line == line {
            cursor.advance();
        }
        return Ok(());
    }
    if token.kind != Kind::Dotted {
        return Err(cursor.expected("a directive"));
    }
    match token.text {
        "file" => module.files.push(file(cursor)?),
        "loc" => {
            location(cursor)?;
        }
        "pragma" => pragma(cursor)?,
        "section" => section(cursor)?,
        "alias" => {
            cursor.advance();
            let name = cursor.take(Kind::Name, "a function")?.to_owned();
            cursor.expect(",")?;
            module.aliases.push((name, cursor.take(Kind::Name, "a function")?.to_owned()));
            cursor.expect(";")?;
        }
        _ => {
            let linkage = linkage(cursor);
            let next = cursor.peek();
            match next.text {
                "entry" | "func" if next.kind == Kind::Dotted => module.functions.push(function(cursor, linkage)?),
                word if next.kind == Kind::Dotted && space(word).is_some() => {
                    let head = head(cursor, linkage)?;
                    module.variables.extend(variables(cursor, &head)?);
                }
                _ => return Err(cursor.expected("`.entry`, `.func` or a variable")),
            }
        }
    }
    Ok(())
}

fn linkage(cursor: &mut Cursor<'_>) -> Linkage {
    let words = [("visible", Linkage::Visible), ("extern", Linkage::Extern), ("weak", Linkage::Weak), ("common", Linkage::Common)];
    let found = words.into_iter().find(|(word, _)| cursor.accept_dotted(word));
    found.map_or(Linkage::Internal, |(_, linkage)| linkage)
}

/// `.file 1 "name", time, size`
fn file(cursor: &mut Cursor<'_>) -> Result<(u32, String), PtxError> {
    cursor.advance();
    let number = number(cursor)?;
    let name = cursor.take(Kind::Text, "the name of a file")?.to_owned();
    while cursor.accept(",") {
        integer(cursor)?;
    }
    Ok((number, name))
}

/// `.loc 1 10 3, function_name label, inlined_at 1 20 4`
fn location(cursor: &mut Cursor<'_>) -> Result<Statement, PtxError> {
    cursor.advance();
    let line = source_line(cursor)?;
    let mut inlined_at = None;
    while cursor.accept(",") {
        match cursor.take(Kind::Name, "`function_name` or `inlined_at`")? {
            "function_name" => {
                cursor.take(Kind::Name, "a label")?;
                if cursor.accept("+") {
                    number(cursor)?;
                }
            }
            "inlined_at" => inlined_at = Some(source_line(cursor)?),
            other => return Err(cursor.error(format!("the simulator does not know `{other}` in `.loc`"))),
        }
    }
    Ok(Statement::Location { line, inlined_at })
}

fn source_line(cursor: &mut Cursor<'_>) -> Result<SourceLine, PtxError> {
    Ok(SourceLine { file: number(cursor)?, line: number(cursor)?, column: number(cursor)? })
}

/// Parses a single 32-bit number: `.loc` has several numbers in a row without separators.
fn number(cursor: &mut Cursor<'_>) -> Result<u32, PtxError> {
    let token = cursor.peek();
    let text = cursor.take(Kind::Number, "a number")?;
    text.parse().map_err(|_| cursor.error_at(token, "a number of 32 bits is wanted"))
}

/// `.pragma "nounroll";`
fn pragma(cursor: &mut Cursor<'_>) -> Result<(), PtxError> {
    cursor.advance();
    cursor.list(";", |cursor| cursor.take(Kind::Text, "the text of a pragma")).map(|_| ())
}

/// `.section name { .. }`: debug information.
fn section(cursor: &mut Cursor<'_>) -> Result<(), PtxError> {
    cursor.advance();
    cursor.take(Kind::Dotted, "the name of a section")?;
    let open = cursor.expect("{")?;
    let mut depth = 1;
    while depth > 0 {
        let token = cursor.advance();
        match token.text {
            _ if token.kind == Kind::End => return Err(cursor.error_at(open, "the section has no end")),
            "{" if token.kind == Kind::Sign => depth += 1,
            "}" if token.kind == Kind::Sign => depth -= 1,
            _ => {}
        }
    }
    Ok(())
}

fn function(cursor: &mut Cursor<'_>, linkage: Linkage) -> Result<Function, PtxError> {
    let is_kernel = cursor.advance().text == "entry";
    if cursor.accept_dotted("attribute") {
        attribute(cursor)?;
    }
    let returns = if !is_kernel && cursor.accept("(") { cursor.list(")", parameter)? } else { Vec::new() };
    let position = cursor.position();
    let name = cursor.take(Kind::Name, "the name of a function")?.to_owned();
    let params = if cursor.accept("(") { cursor.list(")", parameter)? } else { Vec::new() };
    let directives = directives(cursor)?;
    let body = if cursor.accept(";") {
        None
    } else if cursor.accept("{") {
        Some(block(cursor)?)
    } else {
        return Err(cursor.expected("`{`, `;` or a directive of the function"));
    };
    Ok(Function { is_kernel, linkage, name, returns, params, directives, body, position })
}

/// Parses the directives between the parameters of a function and its body.
fn directives(cursor: &mut Cursor<'_>) -> Result<Vec<(String, Vec<u64>)>, PtxError> {
    const KNOWN: [&str; 14] = [
        "maxntid",
        "reqntid",
        "minnctapersm",
        "maxnctapersm",
        "maxnreg",
        "noreturn",
        "reqnctapercluster",
        "explicitcluster",
        "maxclusterrank",
        "blocksareclusters",
        "abi_preserve",
        "abi_preserve_control",
        "unified",
        "managed",
    ];
    let mut directives = Vec::new();
    while cursor.peek().kind == Kind::Dotted {
        if cursor.peek().text == "pragma" {
            pragma(cursor)?;
            continue;
        }
        let token = cursor.advance();
        if !KNOWN.contains(&token.text) {
            return Err(cursor.error_at(token, format!("the simulator does not know the directive `.{}` of a function", token.text)));
        }
        let mut numbers = Vec::new();
        while cursor.peek().kind == Kind::Number || !numbers.is_empty() && cursor.accept(",") {
            numbers.push(integer(cursor)?);
        }
        directives.push((token.text.to_owned(), numbers));
    }
    Ok(directives)
}

/// Parses the statements after a `{`, and the `}`.
fn block(cursor: &mut Cursor<'_>) -> Result<Vec<Statement>, PtxError> {
    cursor.nested(|cursor| {
        let mut statements = Vec::new();
        cursor.enter();
        while !cursor.accept("}") {
            statement(cursor, &mut statements)?;
        }
        cursor.leave();
        Ok(statements)
    })
}

fn statement<'a>(cursor: &mut Cursor<'a>, statements: &mut Vec<Statement>) -> Result<(), PtxError> {
    let token = cursor.peek();
    match token.kind {
        Kind::Sign if token.text == "{" => {
            cursor.advance();
            statements.push(Statement::Block(block(cursor)?));
        }
        Kind::Name if cursor.peek_after(1).is(":") => statements.push(label(cursor)?),
        Kind::Name => statements.push(Statement::Instruction(instruction(cursor)?)),
        Kind::Sign if token.text == "@" => statements.push(Statement::Instruction(instruction(cursor)?)),
        Kind::Dotted => match token.text {
            "loc" => statements.push(location(cursor)?),
            "pragma" => pragma(cursor)?,
            "reg" => registers(cursor, statements)?,
            _ => {
                let linkage = linkage(cursor);
                if !(cursor.peek().kind == Kind::Dotted && space(cursor.peek().text).is_some()) {
                    return Err(cursor.expected("an instruction or a declaration"));
                }
                let head = head(cursor, linkage)?;
                statements.extend(variables(cursor, &head)?.into_iter().map(Statement::Variable));
            }
        },
        _ => return Err(cursor.expected("an instruction")),
    }
    Ok(())
}

/// `name:`, `name: .branchtargets a, b;`, `name: .callprototype (..) _ (..);`, `name: .calltargets f, g;`
fn label(cursor: &mut Cursor<'_>) -> Result<Statement, PtxError> {
    let position = cursor.position();
    let name = cursor.advance().text.to_owned();
    cursor.expect(":")?;
    if cursor.accept_dotted("branchtargets") {
        let targets = cursor.list(";", |cursor| cursor.take(Kind::Name, "a label").map(str::to_owned))?;
        return Ok(Statement::BranchTargets { name, targets, position });
    }
    if cursor.accept_dotted("calltargets") {
        cursor.list(";", |cursor| cursor.take(Kind::Name, "a function"))?;
        return Ok(Statement::CallPrototype(name, position));
    }
    if cursor.accept_dotted("callprototype") {
        if cursor.accept("(") {
            cursor.list(")", parameter)?;
        }
        cursor.take(Kind::Name, "`_`")?;
        if cursor.accept("(") {
            cursor.list(")", parameter)?;
        }
        directives(cursor)?;
        cursor.expect(";")?;
        return Ok(Statement::CallPrototype(name, position));
    }
    Ok(Statement::Label(name, position))
}

/// `.reg .b32 %a, %r<5>;`
fn registers<'a>(cursor: &mut Cursor<'a>, statements: &mut Vec<Statement>) -> Result<(), PtxError> {
    let position = cursor.position();
    let head = head(cursor, Linkage::Internal)?;
    let names = cursor.list(";", |cursor| {
        let name = cursor.take(Kind::Name, "a register")?;
        let count = count(cursor)?;
        if head.vector == 1 {
            return Ok(vec![(name.to_owned(), count)]);
        }
        // A vector register becomes one register for each element.
        let elements = |name: &str| ELEMENTS.iter().take(head.vector as usize).map(|element| (format!("{name}.{element}"), None)).collect();
        if count.is_some() || head.vector as usize > ELEMENTS.len() {
            return Err(cursor.error("the simulator does not know vector registers of this kind"));
        }
        cursor.declare_vector(name, head.vector);
        Ok(elements(name))
    })?;
    statements.push(Statement::Registers { ty: head.ty, names: names.into_iter().flatten().collect(), position });
    Ok(())
}

/// `@%p add.s32 %r1, %r2, %r3;`
fn instruction(cursor: &mut Cursor<'_>) -> Result<Instruction, PtxError> {
    let position = cursor.position();
    let taken = cursor.taken();
    let mut guard = None;
    if cursor.accept("@") {
        let negated = cursor.accept("!");
        guard = Some((cursor.take(Kind::Name, "a predicate")?.to_owned(), negated));
    }
    let opcode = cursor.take(Kind::Name, "an instruction")?.to_owned();
    let mut modifiers = Vec::new();
    while cursor.peek().kind == Kind::Dotted {
        modifiers.push(cursor.advance().text.to_owned());
    }
    let is_call = opcode == "call";
    let operands = cursor.list(";", |cursor| operand(cursor, is_call))?;
    Ok(Instruction { guard, opcode, modifiers, operands, text: cursor.text_since(taken), position })
}
