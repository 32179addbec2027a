//! The parser reads whatever is PTX, and says where it is not.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use kernel_sim::ptx::{AddressBase, Init, Linkage, Module, Operand, SourceLine, Space, Statement, Type, parse};
use proptest::prelude::*;

/// Every PTX file of the project: what nvcc wrote, and what our compiler does.
fn corpus() -> Vec<(PathBuf, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut folders = vec![root.join("tests/cuda"), root.join("../kernel-lang/tests/filetests/ptx")];
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "ptx") {
                let text = fs::read_to_string(&path).unwrap();
                files.push((path, text));
            }
        }
    }
    files.sort();
    files
}

#[test]
fn every_module_of_the_project_parses() {
    let files = corpus();
    assert!(files.len() > 25, "only {} files were found", files.len());
    for (path, text) in files {
        let module = parse(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        // An instruction ends with `;` outside of comments, and so do declarations: nothing may get lost but pragmas.
        let semicolons = text
            .lines()
            .filter(|line| !line.contains(".pragma"))
            .map(|line| line.split("//").next().unwrap_or_default().matches(';').count())
            .sum::<usize>();
        assert_eq!(semicolons, terminated(&module), "{}", path.display());
    }
}

/// How many things of a module end with `;`.
fn terminated(module: &Module) -> usize {
    fn inside(statements: &[Statement]) -> usize {
        let ends = |statement: &Statement| match statement {
            Statement::Block(inner) => inside(inner),
            Statement::Label(..) | Statement::Location { .. } => 0,
            _ => 1,
        };
        statements.iter().map(ends).sum()
    }
    let bodies = module.functions.iter().map(|function| function.body.as_deref().map_or(1, inside)).sum::<usize>();
    module.variables.len() + bodies
}

/// A kernel with that body.
fn kernel(body: &str) -> String {
    format!(".version 8.0\n.target sm_90a\n.address_size 64\n.visible .entry k(.param .u64 p)\n{{\n{body}\n}}\n")
}

/// The operands of the only instruction of a body.
fn operands(instruction: &str) -> Vec<Operand> {
    let module = parse(&kernel(instruction)).unwrap_or_else(|error| panic!("{error}"));
    match module.functions[0].body.as_deref() {
        Some([.., Statement::Instruction(instruction)]) => instruction.operands.clone(),
        other => panic!("{other:?}"),
    }
}

fn name(name: &str) -> Operand {
    Operand::Name(name.to_owned())
}

fn address(base: &str, offset: i64, coordinates: Vec<Operand>) -> Operand {
    Operand::Address { base: AddressBase::Name(base.to_owned()), offset, coordinates }
}

#[test]
fn an_instruction_keeps_every_word() {
    let module = parse(&kernel("@!%p1 ld.global.L2::128B.v4.f32\n\t{%f1, _,  %f3, %f4}, [%rd1+-16]; // four")).unwrap();
    let Some([Statement::Instruction(instruction)]) = module.functions[0].body.as_deref() else { panic!("{module:?}") };
    assert_eq!(instruction.guard, Some(("%p1".to_owned(), true)));
    assert_eq!(instruction.opcode, "ld");
    assert_eq!(instruction.modifiers, ["global", "L2::128B", "v4", "f32"]);
    assert_eq!(instruction.operands, [Operand::Vector(["%f1", "_", "%f3", "%f4"].map(name).to_vec()), address("%rd1", -16, Vec::new())]);
    assert_eq!(instruction.text, "@!%p1 ld.global.L2::128B.v4.f32 {%f1, _, %f3, %f4}, [%rd1+-16];");
    assert_eq!((instruction.position.line, instruction.position.column), (6, 1));
}

#[test]
fn operands_of_every_kind() {
    use Operand::{F32, F64, Int, List, Not, Pair, Sum, Vector};
    let pair = |p: &str, q: &str| Pair(p.to_owned(), q.to_owned());
    let absolute = Operand::Address { base: AddressBase::Absolute(20), offset: 0, coordinates: Vec::new() };
    for (text, expected) in [
        ("setp.lt.and.s32 %p1|%p2, %tid.x, -1, !%p3;", vec![pair("%p1", "%p2"), name("%tid.x"), Int(u64::MAX), Not("%p3".to_owned())]),
        ("elect.sync _|%p1, 0xFFFFFFFFU;", vec![pair("_", "%p1"), Int(0xffff_ffff)]),
        ("mov.b32 %r1, (1+2)*4 - 010 / 0b10;", vec![name("%r1"), Int(8)]),
        ("mov.b32 %r1, (1 < 2) ? WARP_SZ : 7;", vec![name("%r1"), Int(32)]),
        ("mov.b32 %r1, ~(.u64)0 >> 63;", vec![name("%r1"), Int(1)]),
        ("mov.f32 %f1, 0f3f800000;", vec![name("%f1"), F32(0x3f80_0000)]),
        ("mov.f64 %fd1, -.5;", vec![name("%fd1"), F64((-0.5f64).to_bits())]),
        ("mov.f64 %fd1, 0dBff0000000000000;", vec![name("%fd1"), F64((-1f64).to_bits())]),
        ("mov.u64 %rd1, table+8;", vec![name("%rd1"), Sum("table".to_owned(), 8)]),
        ("st.shared.b32 [16+4], %r1;", vec![absolute, name("%r1")]),
        ("red.add [%rd1+4+2*4], %r1;", vec![address("%rd1", 12, Vec::new()), name("%r1")]),
        (
            "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1, {%r2, 3}], [%r4];",
            vec![address("%r1", 0, Vec::new()), address("%rd1", 0, vec![name("%r2"), Int(3)]), address("%r4", 0, Vec::new())],
        ),
        ("call.uni (%r1), f, (%r2, 5), proto;", vec![List(vec![name("%r1")]), name("f"), List(vec![name("%r2"), Int(5)]), name("proto")]),
        ("ret;", vec![]),
        (".reg .v2 .f32 v; st.v2.f32 [%rd1], v;", vec![address("%rd1", 0, Vec::new()), Vector(vec![name("v.x"), name("v.y")])]),
        (".reg .v2 .f32 v; mov.f32 v.g, %f1;", vec![name("v.y"), name("%f1")]),
    ] {
        assert_eq!(operands(text), expected, "{text}");
    }
}

#[test]
fn statements_of_every_kind() {
    let body = "{ .reg .pred p; .reg .b32 %r<5>, q; .shared .align 16 .b8 tile[4][8]; }
        .loc 1 20 3, function_name $info+4, inlined_at 1 9 2
        .pragma \"nounroll\";
        jumps: .branchtargets A, B;
        shape: .callprototype (.param .b32 _) _ (.param .b64 _, .param .align 8 .b8 _[16]) .noreturn;
        A: B:";
    let module = parse(&kernel(body)).unwrap();
    let Some([Statement::Block(block), Statement::Location { line, inlined_at }, rest @ ..]) = module.functions[0].body.as_deref() else {
        panic!("{module:?}")
    };
    let [Statement::Registers { .. }, Statement::Registers { ty, names, .. }, Statement::Variable(tile)] = block.as_slice() else {
        panic!("{block:?}")
    };
    assert_eq!((*ty, names.as_slice()), (Type::B32, [("%r".to_owned(), Some(5)), ("q".to_owned(), None)].as_slice()));
    assert_eq!((tile.space, tile.align, tile.extents.as_slice()), (Space::Shared, Some(16), [Some(4), Some(8)].as_slice()));
    assert_eq!((line.file, line.line, line.column), (1, 20, 3));
    assert_eq!(*inlined_at, Some(SourceLine { file: 1, line: 9, column: 2 }));
    let [
        Statement::BranchTargets { name, targets, .. },
        Statement::CallPrototype(shape, _),
        Statement::Label(a, _),
        Statement::Label(b, _),
    ] = rest
    else {
        panic!("{rest:?}")
    };
    assert_eq!([name, shape, a, b], ["jumps", "shape", "A", "B"]);
    assert_eq!(targets, &["A", "B"]);
}

#[test]
fn modules_with_every_directive() {
    let module = parse(
        ".version 8.10 .target sm_90a, debug .address_size 64
        .file 1 \"a.cu\", 1700000000, 1234
        .global .align 8 .u64 pointers[3] = {generic(bytes)+4, bytes+(1+2)*4, 0};
        .const .align 4 .b8 bytes[2][2] = {{0x1, 017}, {-1, 0xff00(bytes)}};
        .global .f32 pi = 0f40490FDB, e = 2.5;
        .extern .shared .align 16 .b8 smem[];
        .weak .func (.param .b32 out) f(.reg .b32 x, .param .u64 .ptr.global.align 16 y) .noreturn ;
        .alias g, f;
        .visible .entry k .maxntid 128, 2 .minnctapersm 2 .reqnctapercluster 2, 1, 1 .explicitcluster .pragma \"used_bytes_mask 1\"; { ret; }
        .section .debug_str { info: .b8 104, 0 \n .b64 info+4 { } }
        @@DWARF .byte 0x12
        .common .global .b32 shared_by_modules;",
    )
    .unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((module.version, module.target.as_str()), ((8, 10), "sm_90a"));
    assert_eq!(module.files, [(1, "a.cu".to_owned())]);
    assert_eq!(module.aliases, [("g".to_owned(), "f".to_owned())]);
    let symbol = |offset: i64, generic: bool| Init::Symbol { name: "bytes".to_owned(), offset, generic };
    let inits: Vec<_> = module.variables.iter().map(|variable| (variable.name.as_str(), variable.linkage, variable.init.clone())).collect();
    let masked = Init::Masked { mask: 0xff00, symbol: Box::new(symbol(0, false)) };
    let expected = [
        ("pointers", Linkage::Internal, Some(Init::List(vec![symbol(4, true), symbol(12, false), Init::Int(0)]))),
        (
            "bytes",
            Linkage::Internal,
            Some(Init::List(vec![Init::List(vec![Init::Int(1), Init::Int(15)]), Init::List(vec![Init::Int(u64::MAX), masked])])),
        ),
        ("pi", Linkage::Internal, Some(Init::Float(f64::from(std::f32::consts::PI)))),
        ("e", Linkage::Internal, Some(Init::Float(2.5))),
        ("smem", Linkage::Extern, None),
        ("shared_by_modules", Linkage::Common, None),
    ];
    assert_eq!(inits, expected);
    assert_eq!(module.variables[4].extents, [None]);
    let [f, k] = module.functions.as_slice() else { panic!("{module:?}") };
    assert_eq!((f.params[0].space, f.params[1].space, f.params[1].align), (Space::Generic, Space::Param, None));
    assert_eq!((f.returns.len(), f.body.is_none(), f.is_kernel), (1, true, false));
    let directives =
        [("maxntid", vec![128, 2]), ("minnctapersm", vec![2]), ("reqnctapercluster", vec![2, 1, 1]), ("explicitcluster", vec![])];
    assert_eq!(k.directives, directives.map(|(name, numbers)| (name.to_owned(), numbers)));
}

#[test]
fn an_error_shows_the_position() {
    for (body, message) in [
        (
            "\tadd.s32 %r1, %r2 %r3;",
            "PTX line 6, column 19: expected `,` or `;`, found `%r3`\n  \tadd.s32 %r1, %r2 %r3;\n  \t                 ^",
        ),
        ("add.s32 %r1,", "PTX line 7, column 1: expected an operand, found `}`\n  }\n  ^"),
        ("mov.b32 %r1, 'a';", "PTX line 6, column 14: `'` has no meaning in PTX\n  mov.b32 %r1, 'a';\n               ^"),
        ("mov.b32 %r1, 09;", "PTX line 6, column 14: `09` is no number\n  mov.b32 %r1, 09;\n               ^"),
        ("mov.b32 %r1, 1/0;", "PTX line 6, column 15: division by zero\n  mov.b32 %r1, 1/0;\n                ^"),
        (
            "mov.b32 %r1, 1+0f00000000;",
            "PTX line 6, column 15: `+` can not be applied to these constants\n  mov.b32 %r1, 1+0f00000000;\n                ^",
        ),
        (
            "mov.b32 %r1, a[1];",
            "PTX line 6, column 15: the simulator does not know elements of arrays: write `[a+bytes]` or `a+bytes`\n  mov.b32 %r1, a[1];\n                ^",
        ),
        (".texture x;", "PTX line 6, column 1: expected an instruction or a declaration, found `.texture`\n  .texture x;\n  ^"),
        (".local .f99 x;", "PTX line 6, column 8: the simulator does not know `.f99` in a declaration\n  .local .f99 x;\n         ^"),
        (
            ".local .b8 x[0x7fffffffffffffff][8];",
            "PTX line 6, column 13: the variable is larger than any memory\n  .local .b8 x[0x7fffffffffffffff][8];\n              ^",
        ),
        (
            ".local .b8 x = 1;",
            "PTX line 6, column 14: only `.global` and `.const` variables have initial values\n  .local .b8 x = 1;\n               ^",
        ),
        (
            ".global .b8 x[2] = {1, 2, 3};",
            "PTX line 6, column 18: 3 initial values are too many for `x`\n  .global .b8 x[2] = {1, 2, 3};\n                   ^",
        ),
        ("}}", "PTX line 6, column 2: expected a directive, found `}`\n  }}\n   ^"),
    ] {
        assert_eq!(parse(&kernel(body)).unwrap_err().to_string(), message);
    }
    let first = "PTX line 1, column 1: expected `.version`, with which a module begins, found the end of the text\n  \n  ^";
    assert_eq!(parse("").unwrap_err().to_string(), first);
}

#[test]
fn deep_nesting_is_an_error() {
    for (open, count) in [("{", 100_000), ("mov.b32 %r1, ((", 1), ("mov.b32 %r1, {{", 1), ("mov.b32 %r1, --", 1), ("mov.b32 %r1, 1?", 1)] {
        let body = if count > 1 { open.repeat(count) } else { format!("{}{}", open, open[13..].repeat(50_000)) };
        let error = parse(&kernel(&body)).unwrap_err();
        assert!(error.message.contains("nested deeper"), "{}", error.message);
    }
}

#[test]
fn a_megabyte_takes_well_under_a_second() {
    let (_, text) = corpus().into_iter().max_by_key(|(_, text)| text.len()).unwrap();
    let start = text.find(".visible .entry").unwrap();
    let large = text[..start].to_owned() + &text[start..].repeat(1_000_000 / (text.len() - start) + 1);
    let before = Instant::now();
    parse(&large).unwrap();
    let taken = before.elapsed();
    assert!(taken < Duration::from_secs(1), "{} bytes took {taken:?}", large.len());
}

static CORPUS: LazyLock<Vec<(PathBuf, String)>> = LazyLock::new(corpus);

/// Pieces that change what the text around them means.
const PIECES: &[&str] = &[
    "{",
    "}",
    "(",
    ")",
    "[",
    "]",
    ";",
    ",",
    "\"",
    "/*",
    "*/",
    "0x",
    "-",
    "+",
    "!",
    "|",
    "@",
    ".v4",
    ".reg .v2 .f32 v;",
    "<9>",
    "\0",
    "é",
    "%",
    "?",
    "generic(",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// No text, however broken, makes the parser panic, and each error has its position in the text.
    #[test]
    fn broken_text_is_an_error_with_a_position(
        file: prop::sample::Index,
        changes in prop::collection::vec((any::<prop::sample::Index>(), 0..40usize, prop::option::of(prop::sample::select(PIECES))), 1..4),
        end in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let mut text = file.get(&CORPUS).1.clone();
        for (start, removed, piece) in changes {
            let boundary = |mut start: usize| { while !text.is_char_boundary(start) { start -= 1; } start };
            let from = boundary(start.index(text.len() + 1));
            let to = boundary((from + removed).min(text.len())).max(from);
            text.replace_range(from..to, piece.unwrap_or_default());
        }
        if let Some(end) = end {
            let mut end = end.index(text.len() + 1);
            while !text.is_char_boundary(end) { end -= 1; }
            text.truncate(end);
        }
        if let Err(error) = parse(&text) {
            let row = error.position.line as usize;
            prop_assert!(row >= 1 && row <= text.split('\n').count(), "{error}");
            let line = text.split('\n').nth(row - 1).unwrap().trim_end_matches('\r');
            prop_assert_eq!(&error.line, line);
            prop_assert!(error.position.column >= 1 && error.position.column as usize <= line.len() + 1, "{error}");
            prop_assert!(!error.message.is_empty());
        }
    }
}
