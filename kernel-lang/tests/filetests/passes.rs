//! The folders `passes/` and `ptx/`: a kernel and what a pass, or the whole compiler, makes of it.
//!
//! Lines in front of the kernel say how:
//!
//! ```text
//! ; test pass split_full_tiles     the pass, or `; test compile` for the whole compiler
//! ; bind B = 64, T = f32           specialised so first; of arguments also `stride = 1`, `n % 16 = 0`
//! ; num_warps 8                    4 if not said
//! ; num_stages 2                   3 if not said
//! ; target sm_90a                  sm_80 if not said; under `ptx/` the folder says it
//! ; then cse, dce                  passes that clean up behind it
//! ; checked                        for a launch that reports accesses outside
//! ```

use kernel_lang::backend;
use kernel_lang::diagnostic::Diagnostics;
use kernel_lang::ir::{self, Function, Op, Stage};
use kernel_lang::passes::{self, PIPELINE, Pass, SCHEDULE, SIMPLIFY, ScheduledPass, UNCHECKED, specialize, specialize_warps};
use kernel_lang::target::{Asked, Target};
use kernel_lang::{Bindings, Compiled, Options, Prepared, Schedule, compile, stage_after};

use crate::support::{each, expect_file};

const EXPECT: &str = "; --- expect ---\n";

/// The pass that is no row of a table, because it makes another kernel beside the one it is given. Its result is too long for an example in the documentation.
const WITHOUT_ROW: &str = "specialize_warps";

/// What the lines in front of a kernel say.
pub(crate) struct Header {
    test: String,
    then: Vec<String>,
    pub(crate) options: Options,
}

pub(crate) fn header(text: &str) -> Result<Header, String> {
    let mut header = Header { test: String::new(), then: Vec::new(), options: Options::new(Bindings::new(), Target::SM_80) };
    for line in text.lines().map_while(|line| line.strip_prefix("; ")) {
        let (key, rest) = line.split_once(' ').unwrap_or((line, ""));
        match key {
            "test" => header.test = rest.to_string(),
            "then" => header.then = rest.split(", ").map(str::to_string).collect(),
            "bind" => {
                for binding in rest.split(", ") {
                    let (name, value) = binding.split_once(" = ").ok_or("a binding is `NAME = VALUE`")?;
                    let bindings = std::mem::take(&mut header.options.bindings);
                    header.options.bindings = match value.parse() {
                        Ok(0) if let Some((name, of)) = name.split_once(" % ") => {
                            bindings.multiple(name, of.parse().map_err(|_| format!("`{of}` is no number"))?)
                        }
                        Ok(int) => bindings.constant(name, int),
                        Err(_) => bindings.ty(name, value.parse().map_err(|_| format!("`{value}` is no number and no dtype"))?),
                    };
                }
            }
            "num_warps" => header.options.schedule.num_warps = rest.parse().map_err(|_| "`num_warps` is a number")?,
            "num_stages" => header.options.schedule.num_stages = rest.parse().map_err(|_| "`num_stages` is a number")?,
            "num_ctas" => {
                header.options.schedule.num_ctas = rest.parse().map_err(|_| "`num_ctas` is a number")?;
                header.options.target = Target::SM_90A;
            }
            "target" => header.options.target = rest.parse().map_err(|_| "an unknown target")?,
            "checked" => header.options.checked = true,
            // Everything else is a remark for the reader.
            _ => {}
        }
    }
    Ok(header)
}

#[test]
fn pass() {
    each("passes", "kir", &mut |path, text| {
        let header = header(text)?;
        let name = header.test.strip_prefix("pass ").ok_or("the first line is `; test pass NAME`")?;
        let folder = path.parent().and_then(|folder| folder.file_name()).unwrap_or_default();
        if folder != name {
            return Err(format!("the folder is {folder:?}, the pass `{name}`"));
        }
        let input = text.split(EXPECT).next().unwrap_or_default();
        let found = apply(name, &ir::parse(input).map_err(|error| error.to_string())?, &header)?;
        expect_file(path, &format!("{input}{EXPECT}{found}"))
    });
}

/// The kernel after a pass, or what is wrong with it.
fn apply(name: &str, func: &Function, header: &Header) -> Result<String, String> {
    let options = &header.options;
    ir::verify(func, Stage::Generic).map_err(|violations| format!("the input is broken: {violations:?}"))?;
    let mut func = match specialize::run(func, &options.bindings, None) {
        Ok(func) => func,
        Err(diagnostics) if name == "specialize" => return Ok(diagnostics.render(&func.files)),
        Err(diagnostics) => return Err(diagnostics.render(&func.files)),
    };
    func.reports = options.checked;
    let stage = if name == WITHOUT_ROW { Stage::Tile } else { stage_after(name, options.schedule) };
    if name == WITHOUT_ROW {
        func = match specialize_warps::run(&func, &Asked::new(options.target), options.schedule) {
            Ok((func, _)) => func,
            Err(obstacle) => return Ok(format!("{obstacle}\n")),
        };
    } else if name != "specialize" {
        let target = &Asked::new(options.target);
        // The passes for layouts follow `assign_layouts`, and those of a backend all of them.
        let with_layouts = SCHEDULE.iter().skip_while(|pass| pass.name != "assign_layouts");
        let count = match stage {
            Stage::Ptx(_) => SCHEDULE.len(),
            Stage::Gpu(_) if name != "assign_layouts" => 1,
            _ => 0,
        };
        for pass in with_layouts.take(count) {
            (pass.run)(&mut func, target, options.schedule).map_err(|errors| errors.render(&func.files))?;
        }
        let before = func.to_string();
        let changed = match scheduled(name) {
            Some(pass) => match (pass.run)(&mut func, target, options.schedule) {
                Ok(changed) => changed,
                Err(diagnostics) => return Ok(diagnostics.render(&func.files)),
            },
            None => (row(name)?.run)(&mut func),
        };
        if changed != (func.to_string() != before) {
            return Err(format!("the pass says changed = {changed}, and makes of\n{before}\nthis:\n{func}"));
        }
    }
    for pass in &header.then {
        (row(pass)?.run)(&mut func);
    }
    ir::verify(&func, stage).map_err(|violations| format!("the result is broken: {violations:?}\n{func}"))?;
    Ok(func.to_string())
}

fn row(name: &str) -> Result<&'static Pass, String> {
    UNCHECKED.iter().chain(SIMPLIFY).chain(PIPELINE).find(|pass| pass.name == name).ok_or_else(|| format!("there is no pass `{name}`"))
}

fn scheduled(name: &str) -> Option<&'static ScheduledPass> {
    SCHEDULE.iter().chain(backend::ptx::PASSES).find(|pass| pass.name == name)
}

/// The names of all passes.
fn names() -> impl Iterator<Item = &'static str> {
    let rows = UNCHECKED.iter().chain(SIMPLIFY).chain(PIPELINE).map(|pass| pass.name);
    ["specialize"].into_iter().chain(rows).chain(SCHEDULE.iter().chain(backend::ptx::PASSES).map(|pass| pass.name))
}

/// The example that opens a pass's file is what the pass does: `; before`, options and a kernel, `; after` and a kernel.
#[test]
fn examples() {
    let source = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let (folder, of_backend) = (source.join("passes"), source.join("backend/ptx"));
    for name in names() {
        let files = [folder.join(name).with_extension("rs"), of_backend.join(name).join("mod.rs")];
        let Some(source) = files.into_iter().find_map(|file| std::fs::read_to_string(file).ok()) else {
            // A pass in a folder has its example as a documentation test.
            assert!(folder.join(name).join("mod.rs").is_file(), "{name}");
            continue;
        };
        let doc: String = source
            .lines()
            .map_while(|line| line.strip_prefix("//!"))
            .map(|line| format!("{}\n", line.strip_prefix(' ').unwrap_or(line)))
            .collect();
        let example = doc.split("```text\n; before\n").nth(1).and_then(|rest| rest.split("```").next());
        let (before, after) = example.and_then(|text| text.split_once("; after\n")).unwrap_or_else(|| panic!("{name} has no example"));
        let func = ir::parse(before).unwrap_or_else(|error| panic!("{name}: {error}\n{before}"));
        let found = apply(name, &func, &header(before).unwrap()).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(found, after, "{name}");
    }
}

/// Every row of the tables has a folder of cases.
#[test]
fn every_pass_has_cases() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/filetests/passes");
    for name in names().chain([WITHOUT_ROW]) {
        assert!(folder.join(name).is_dir(), "tests/filetests/passes/{name} is missing");
    }
}

#[test]
fn ptx() {
    each("ptx", "kir", &mut |path, text| {
        let mut options = header(text)?.options;
        let folder = path.parent().and_then(|folder| folder.file_name()).unwrap_or_default().to_string_lossy();
        options.target = folder.parse().map_err(|_| format!("the folder `{folder}` is no target"))?;
        let func = ir::parse(text).map_err(|error| error.to_string())?;
        let compiled = compile(&func, &options).map_err(|diagnostics| diagnostics.render(&func.files))?;
        expect_file(&path.with_extension("ptx"), &compiled.ptx)
    });
}

/// Kernels of the tests, specialised.
fn specialised() -> Vec<(Function, Options)> {
    let mut kernels = Vec::new();
    each("ptx", "kir", &mut |_, text| {
        let options = header(text)?.options;
        kernels.push((ir::parse(text).map_err(|error| error.to_string())?, options));
        Ok(())
    });
    each("frontend/accept", "kir", &mut |_, text| {
        let func = ir::parse(text).map_err(|error| error.to_string())?;
        let mut bindings = Bindings::new();
        for param in &func.types {
            bindings = bindings.ty(&param.name, param.choices[0]);
        }
        for param in &func.consts {
            bindings = bindings.constant(&param.name, if param.dtype.is_int() { 64 } else { 1 });
        }
        let options = Options::new(bindings, Target::SM_80);
        // A few kernels assert what these numbers break.
        let is_for_cpu = |inst| matches!(func.inst(inst).op, Op::Reshape { .. } | Op::Permute { .. } | Op::Reduce { .. } | Op::Scan { .. });
        if func.all_insts().into_iter().any(is_for_cpu) {
            return Ok(());
        }
        if specialize::run(&func, &options.bindings, None).is_ok() {
            kernels.push((func, options));
        }
        Ok(())
    });
    assert!(kernels.len() > 30, "{} kernels", kernels.len());
    kernels
}

/// Where the compiler says that another target gets the same code, it does, and nowhere else in these kernels.
#[test]
fn targets_that_answer_alike_get_the_same_code() {
    let body = |ptx: &str| -> Vec<String> {
        let named = |line: &&str| !line.starts_with(".target") && !line.starts_with(".version");
        ptx.lines().filter(named).map(str::to_string).collect()
    };
    let [old, new] = Target::ALL;
    let (mut same, mut different) = (0, 0);
    for (func, options) in specialised().into_iter().filter(|(_, options)| options.schedule.num_ctas <= old.max_cluster()) {
        let on = |target| {
            let prepared = Prepared::new(&func, &options.bindings, target, options.checked).expect("it compiles");
            prepared.compile(options.schedule).expect("it compiles")
        };
        let ((on_old, like_old), (on_new, like_new)) = (on(old), on(new));
        let is_same = body(&on_old.ptx) == body(&on_new.ptx);
        assert_eq!((like_old.contains(&new), like_new.contains(&old)), (is_same, is_same), "{func}");
        if is_same { same += 1 } else { different += 1 }
    }
    assert!(same > 30 && different >= 3, "{same} are the same and {different} differ");
}

/// A kernel that is prepared once compiles, for each schedule, to the code and the errors of a compilation of its own.
#[test]
fn a_prepared_kernel_compiles_like_a_fresh_one() {
    let all = |own: Schedule| {
        let with = |change: fn(&mut Schedule)| {
            let mut schedule = own;
            change(&mut schedule);
            schedule
        };
        // Clusters stand between schedules of one CTA, so that each must find the kernel prepared for it.
        [
            own,
            with(|schedule| schedule.num_ctas = 2),
            with(|schedule| schedule.num_warps = 1),
            with(|schedule| (schedule.num_warps, schedule.num_ctas) = (8, 4)),
            with(|schedule| schedule.num_stages = 5),
            with(|schedule| schedule.maxnreg = Some(40)),
            with(|schedule| schedule.num_warps = 3),
        ]
    };
    let mut kernels = specialised();
    // A pass handles flattened indices only if the program is no cluster.
    each("passes/split_full_tiles", "kir", &mut |path, text| {
        if path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("flattened")) {
            let func = ir::parse(text.split(EXPECT).next().unwrap_or_default()).map_err(|error| error.to_string())?;
            kernels.push((func, header(text)?.options));
        }
        Ok(())
    });
    let (mut codes, mut clusters, mut errors, mut checked_codes) = (0, 0, 0, 0);
    for (index, (func, options)) in kernels.into_iter().enumerate() {
        let (target, checked) = (Target::ALL[index % 2], options.checked || index % 3 == 0);
        let prepare = || Prepared::new(&func, &options.bindings, target, checked).expect("it compiles");
        let prepared = prepare();
        for schedule in all(options.schedule) {
            let text = |diagnostics: Diagnostics| diagnostics.render(&func.files);
            let own = Options { target, schedule, checked, ..options.clone() };
            let (shared, fresh) = (prepared.compile(schedule).map_err(text), compile(&func, &own).map_err(text));
            let alike = |result: &Result<(Compiled, Vec<Target>), String>| result.as_ref().ok().map(|(_, alike)| alike.clone());
            // Targets seldom differ, so a part of the kernels suffices.
            if index % 4 == 0 {
                assert_eq!(alike(&shared), alike(&prepare().compile(schedule).map_err(text)), "{schedule}\n{func}");
            }
            assert_eq!(shared.map(|(compiled, _)| compiled), fresh, "{schedule}\n{func}");
            codes += usize::from(fresh.is_ok());
            clusters += usize::from(fresh.is_ok() && schedule.num_ctas > 1);
            checked_codes += usize::from(fresh.is_ok() && checked);
            errors += usize::from(fresh.is_err());
        }
    }
    let counts = [codes, clusters, errors, checked_codes];
    assert!(counts.into_iter().zip([200, 20, 40, 60]).all(|(count, least)| count >= least), "{counts:?}");
}

/// The same kernel compiles to the same bytes, with every text on the way the same.
#[test]
fn compilation_is_deterministic() {
    for (func, options) in specialised() {
        let run = || {
            let mut texts = Vec::new();
            let compiled = kernel_lang::compile_with(&func, &options, &mut |name, func, _| texts.push(format!("{name}\n{func}")));
            (texts, compiled.unwrap_or_else(|diagnostics| panic!("{}\n{func}", diagnostics.render(&func.files))))
        };
        assert_eq!(run(), run());
    }
}

/// After each pass a kernel satisfies the invariants of its stage.
#[test]
fn every_pass_leaves_verified_ir() {
    for (func, options) in specialised() {
        let mut verified = |name: &str, func: &Function, _: bool| {
            // Extents are not yet padded.
            if name != "specialize" {
                ir::verify(func, stage_after(name, options.schedule))
                    .unwrap_or_else(|violations| panic!("`{name}`: {violations:?}\n{func}"));
            }
        };
        kernel_lang::compile_with(&func, &options, &mut verified).expect("it compiles");
    }
}

/// A pass reports whether it changed the kernel, and a second run of the same pass changes nothing. Four passes are exceptions: a second run would
/// split a guarded branch again, align a loop again, split the branch that divides in 64 bits again, and report an access twice.
#[test]
fn a_second_run_changes_nothing() {
    const NOT_AGAIN: &[&str] = &["split_full_tiles", "align_loops", "divide", "report_accesses"];
    for (func, options) in specialised() {
        let mut func = specialize::run(&func, &options.bindings, None).expect("it was specialised before");
        func.reports = options.checked;
        for pass in UNCHECKED.iter().chain(SIMPLIFY).chain(PIPELINE) {
            let before = func.to_string();
            passes::run(&mut func, std::slice::from_ref(pass), &mut |pass, func, changed| {
                assert_eq!(changed, func.to_string() != before, "`{}` says changed = {changed}\n{before}\n{func}", pass.name);
            });
            if !NOT_AGAIN.contains(&pass.name) {
                let (before, mut again) = (func.to_string(), func.clone());
                let changed = (pass.run)(&mut again);
                assert!(!changed && again.to_string() == before, "`{}`, run twice, gives\n{again}\nafter\n{before}", pass.name);
            }
        }
    }
}

/// A kernel whose tiles have layouts is text too.
#[test]
fn layouts_round_trip() {
    for (func, options) in specialised() {
        let mut last = None;
        kernel_lang::compile_with(&func, &options, &mut |_, func, _| last = Some(func.clone())).expect("it compiles");
        let printed = last.map(|func| func.to_string()).unwrap_or_default();
        let again = ir::parse(&printed).unwrap_or_else(|error| panic!("{error}\n{printed}"));
        assert_eq!(again.to_string(), printed);
        ir::verify(&again, Stage::Ptx(options.schedule)).unwrap_or_else(|violations| panic!("{violations:?}\n{printed}"));
    }
}
