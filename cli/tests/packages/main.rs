//! `galatea inspect`, `verify`, `run` and `diff` as a user calls them: whole texts, exit statuses, and bad files.

mod programs;

use std::fs;
use std::path::Path;
use std::process::Command;

use galatea::Device;
use galatea::graph::weights;
use galatea::ops::Tensor;
use serde_json::Value;
use tempfile::TempDir;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/packages");

/// A folder with the packages.
fn packages() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let programs = [
        ("scaled.gpk", programs::package()),
        ("retrained.gpk", programs::retrained()),
        ("later.gpk", programs::later()),
        ("tuned.gpk", programs::tuned()),
        ("tuned-here.gpk", programs::tuned_here()),
        ("wide.gpk", programs::wide()),
        ("opaque.gpk", programs::opaque()),
    ];
    for (name, bytes) in programs {
        fs::write(folder.path().join(name), bytes).unwrap();
    }
    #[cfg(unix)]
    for name in ["first", "second"] {
        fs::write(folder.path().join(format!("assembled-{name}.gpk")), programs::assembled(name)).unwrap();
    }
    folder
}

/// The output, the errors and the exit status of a command line in a folder.
fn galatea(folder: &TempDir, line: &str) -> (String, String, i32) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_galatea"));
    command.current_dir(folder).args(line.split_whitespace());
    command.env("GALATEA_CACHE", "off").env("CARGO_TERM_COLOR", "never").env_remove("GALATEA_DEVICE");
    let output = command.output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (text(output.stdout), text(output.stderr), output.status.code().unwrap())
}

/// The text without the sizes of PTX, the times of tuning, and without the sizes and offsets of entries, which each change of the compiler changes.
fn without_sizes(text: &str) -> String {
    let (mut in_variants, mut in_entries) = (false, false);
    let mut lines = String::new();
    for line in text.lines() {
        in_entries |= line.starts_with("ENTRY");
        in_variants = ["VARIANT", "TUNED FOR"].iter().any(|title| line.starts_with(title)) || (in_variants && !line.is_empty());
        let is_size = |word: &&str| word.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
        let words: Vec<&str> = line.split_whitespace().collect();
        let line = match () {
            () if in_entries && words.iter().any(is_size) => {
                words.iter().map(|word| if is_size(word) { ".." } else { word }).collect::<Vec<_>>().join(" ")
            }
            () if in_variants && words.last().is_some_and(is_size) => {
                let size = words.last().unwrap();
                format!("{}..", line.strip_suffix(size).unwrap().trim_end().to_owned() + " ")
            }
            () => line.to_owned(),
        };
        lines += &(line + "\n");
    }
    lines
}

/// `BLESS=1` writes the expected texts.
#[test]
fn texts_are_those_of_the_files() {
    let folder = packages();
    fs::write(folder.path().join("cut.gpk"), &programs::package()[..5000]).unwrap();
    let cases = [
        ("inspect", "inspect scaled.gpk", 0),
        ("inspect-tuned", "inspect tuned.gpk", 0),
        ("inspect-tuned-here", "inspect tuned-here.gpk", 0),
        ("inspect-untrusted", "inspect tuned-here.gpk --untrusted", 0),
        ("inspect-untrusted-cut", "inspect cut.gpk --untrusted", 1),
        ("inspect-opaque", "inspect opaque.gpk", 0),
        ("inspect-missing", "inspect missing.gpk", 1),
        ("inspect-folder", "inspect .", 1),
        ("inspect-cut", "inspect cut.gpk", 1),
        ("verify", "verify scaled.gpk", 0),
        ("verify-targets", "verify scaled.gpk --target sm_80 --target sm_90a", 0),
        ("verify-tuned", "verify tuned.gpk --target sm_90a", 0),
        ("verify-tuned-here", "verify tuned-here.gpk", 0),
        ("verify-opaque", "verify opaque.gpk", 0),
        ("verify-untrusted-opaque", "verify opaque.gpk --untrusted", 1),
        ("verify-untrusted", "verify tuned.gpk --untrusted", 0),
        ("verify-untrusted-cut", "verify cut.gpk --untrusted", 1),
        ("verify-untrusted-target", "verify scaled.gpk --untrusted --target sm_80", 2),
        ("verify-cut", "verify cut.gpk", 1),
        ("run", "run scaled.gpk rows=3 --device cpu --seed 3", 0),
        ("run-sim", "run scaled.gpk rows=3 --device sim --seed 3", 0),
        ("run-tuned", "run tuned.gpk n=3 --device sim --seed 3", 0),
        ("run-opaque", "run opaque.gpk n=3 --device cpu", 1),
        ("run-untrusted", "run scaled.gpk rows=3 --device cpu --seed 3 --untrusted", 0),
        ("run-untrusted-tuned", "run tuned.gpk n=3 --device sim --seed 3 --untrusted", 0),
        ("run-untrusted-inputs", "run wide.gpk --device cpu --seed 3 --untrusted", 1),
        ("run-untrusted-time", "run scaled.gpk rows=3 --device cpu --untrusted --max-time 0", 1),
        ("run-trusted-memory", "run scaled.gpk rows=3 --device cpu --max-memory 9", 2),
        ("run-out-of-range", "run scaled.gpk rows=51 --device cpu", 1),
        ("run-no-value", "run scaled.gpk --device cpu", 1),
        ("run-no-dim", "run scaled.gpk row=3 --device cpu", 1),
        ("run-no-device", "run scaled.gpk rows=3 --device tpu", 1),
        ("diff-equal", "diff scaled.gpk scaled.gpk", 0),
        ("diff-weights", "diff scaled.gpk retrained.gpk", 1),
        ("diff", "diff scaled.gpk later.gpk", 1),
        ("diff-untrusted", "diff tuned.gpk tuned-here.gpk --untrusted", 0),
        ("diff-untrusted-kernels", "diff scaled.gpk later.gpk --untrusted", 1),
        ("diff-untrusted-cut", "diff scaled.gpk cut.gpk --untrusted", 2),
        ("diff-tuned", "diff tuned.gpk tuned-here.gpk", 1),
        #[cfg(unix)]
        ("inspect-machine-code", "inspect assembled-first.gpk", 0),
        #[cfg(unix)]
        ("verify-machine-code", "verify assembled-first.gpk", 0),
        #[cfg(unix)]
        ("verify-machine-code-untrusted", "verify assembled-first.gpk --untrusted", 0),
        #[cfg(unix)]
        ("diff-machine-code", "diff assembled-first.gpk assembled-second.gpk", 1),
        #[cfg(unix)]
        ("diff-no-machine-code", "diff scaled.gpk assembled-first.gpk", 1),
        ("diff-missing", "diff scaled.gpk missing.gpk", 2),
    ];
    for (name, line, status) in cases {
        let (out, err, code) = galatea(&folder, line);
        assert_eq!(code, status, "{name}: {out}{err}");
        // Other machines have other devices.
        let err = if name == "run-no-device" { err.lines().take(1).flat_map(|line| [line, "\n"]).collect() } else { err };
        let text = format!("$ galatea {line}\n{}{err}", without_sizes(&out));
        let file = Path::new(FOLDER).join(format!("{name}.txt"));
        if std::env::var_os("BLESS").is_some() {
            fs::write(&file, &text).unwrap();
        }
        assert_eq!(text, fs::read_to_string(&file).unwrap_or_default(), "{name}: BLESS=1 writes the file");
    }
}

/// docs/packages.md documents the schema, which other programs rely on.
#[test]
fn a_package_as_json_has_a_stable_schema() {
    let folder = packages();
    let (out, err, code) = galatea(&folder, "inspect scaled.gpk --json");
    assert_eq!((code, &*err), (0, ""));
    let json: Value = serde_json::from_str(&out).unwrap();
    let names: Vec<&str> = json.as_object().unwrap().keys().map(String::as_str).collect();
    let expected = [
        "constants",
        "dims",
        "entries",
        "file_bytes",
        "format",
        "inputs",
        "kernels",
        "opaque_ops",
        "outputs",
        "package_format",
        "program",
        "steps",
        "written_by",
    ];
    assert_eq!(names, expected);
    assert_eq!((&json["format"], &json["program"], &json["package_format"]), (&"galatea inspect 1".into(), &"scaled".into(), &1.into()));
    assert_eq!(json["inputs"], serde_json::json!([{ "name": "x", "type": "f32[rows, 4]" }]));
    assert_eq!(json["constants"], serde_json::json!([{ "name": "weight", "dtype": "f32", "shape": [4], "bytes": 16 }]));
    assert_eq!((&json["dims"][0]["low"], &json["dims"][0]["high"]), (&1.into(), &50.into()));
    assert_eq!(json["steps"][1]["grid"], serde_json::json!(["rows", "1", "1"]));
    assert_eq!(json["steps"][1]["configurations"], serde_json::json!([]));
    assert_eq!(json["opaque_ops"], serde_json::json!([]));
    let opaque: Value = serde_json::from_str(&galatea(&folder, "inspect opaque.gpk --json").0).unwrap();
    assert_eq!(opaque["opaque_ops"], serde_json::json!(["scaled::sort(Tensor x, bool descending) -> Tensor"]));
    let tuned: Value = serde_json::from_str(&galatea(&folder, "inspect tuned.gpk --json").0).unwrap();
    let configuration =
        serde_json::json!({ "text": "Config { BLOCK: 128, num_warps: 4, num_stages: 8 }", "grid": ["cdiv(n, 128)", "1", "1"] });
    assert_eq!(tuned["steps"][1]["configurations"][1], configuration);
    let kernel = &json["kernels"][0];
    assert_eq!(kernel["params"][0], serde_json::json!({ "name": "x", "kind": "View<2>" }));
    assert!(kernel["variants"].as_array().unwrap().iter().any(|variant| variant["values"] == "BLOCK = 64" && variant["target"] == "sm_80"));
    // The sizes and offsets are those of the file.
    let file = fs::read(folder.path().join("scaled.gpk")).unwrap();
    assert_eq!(json["file_bytes"], file.len());
    for entry in json["entries"].as_array().unwrap() {
        let [offset, bytes] = ["offset", "bytes"].map(|name| entry[name].as_u64().unwrap() as usize);
        assert!(offset % 4096 == 0 && offset + bytes <= file.len(), "{entry}");
        if entry["name"] == "manifest.json" {
            serde_json::from_slice::<Value>(&file[offset..offset + bytes]).unwrap();
        }
    }
}

/// A package needs the program that runs it and the C library, and no other file: no compiler, no temporary folder, no device files.
#[test]
#[cfg(target_os = "linux")]
fn a_package_runs_in_a_root_with_nothing_else() {
    let (folder, root) = (packages(), tempfile::tempdir().unwrap());
    let program = Path::new(env!("CARGO_BIN_EXE_galatea"));
    // The libraries that the loader needs, and the loader, by their absolute paths.
    let linked = String::from_utf8(Command::new("ldd").arg(program).output().unwrap().stdout).unwrap();
    let libraries = linked.split_whitespace().filter(|word| word.starts_with('/')).map(|path| (Path::new(path), path));
    for (from, to) in [(program, "/galatea"), (&folder.path().join("scaled.gpk"), "/scaled.gpk")].into_iter().chain(libraries) {
        let to = root.path().join(to.trim_start_matches('/'));
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::copy(from, to).unwrap();
    }
    let line = ["run", "scaled.gpk", "rows=3", "--device", "cpu", "--seed", "3"];
    let inside = Command::new("chroot")
        .arg(root.path())
        .arg("/galatea")
        .args(line)
        .env_clear()
        .env("PATH", "/usr/sbin:/sbin:/usr/bin:/bin")
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&inside.stderr);
    if errors.contains("Operation not permitted") {
        return println!("skipped: only root may change the root directory");
    }
    let outside = galatea(&folder, &line.join(" "));
    assert_eq!((String::from_utf8_lossy(&inside.stdout), errors, inside.status.code()), (outside.0.into(), "".into(), Some(0)));
}

#[test]
fn a_run_reads_and_writes_files_of_tensors() {
    let folder = packages();
    let (cpu, path) = (Device::cpu(), |name: &str| folder.path().join(name));
    let x: Tensor = cpu.tensor_from(&[1.0f32, 2.0, 3.0, 4.0, -1.0, -2.0, -3.0, -4.0], [2, 4]).unwrap().into();
    weights::save(path("x.safetensors"), &[("x".to_owned(), x.clone())]).unwrap();
    let (out, err, code) = galatea(&folder, "run scaled.gpk --inputs x.safetensors --outputs y.safetensors --device cpu");
    let expected = "\
output 0: f32[2, 4]
tensor([[ 0.5000,  0.5000, -1.5000,  4.0000],
        [-0.5000, -0.5000,  1.5000, -4.0000]])
output 1: f32[1, 4]
tensor([[-0.5000, -0.5000,  1.5000, -4.0000]])
";
    assert_eq!((&*out, &*err, code), (expected, "", 0));
    let outputs = weights::load(path("y.safetensors"), &cpu).unwrap();
    let named: Vec<(&str, Vec<f32>)> = outputs.iter().map(|(name, tensor)| (&**name, tensor.to_vec().unwrap())).collect();
    assert_eq!(named[1], ("output1", vec![-0.5, -0.5, 1.5, -4.0]));
    assert_eq!((named[0].0, named[0].1.len()), ("output0", 8));
    // The value of a dim is that of the tensor.
    assert_eq!(galatea(&folder, "run scaled.gpk rows=2 --inputs x.safetensors --device cpu").0, expected);
    let (_, err, code) = galatea(&folder, "run scaled.gpk rows=3 --inputs x.safetensors --device cpu");
    assert_eq!((&*err, code), ("error: dim `rows` is both 2 and 3\n", 1));
    // Guards are those of the library.
    let many: Tensor = cpu.zeros::<f32>([51, 4]).unwrap().into();
    weights::save(path("many.safetensors"), &[("x".to_owned(), many)]).unwrap();
    let (_, err, code) = galatea(&folder, "run scaled.gpk --inputs many.safetensors --device cpu");
    assert!(
        code == 1 && err.starts_with("error: input `x`, axis 0: dim `rows` is 51, allowed 1..=50 (declared in cli/tests/packages/"),
        "{err}"
    );
    weights::save(path("z.safetensors"), &[("z".to_owned(), x)]).unwrap();
    let (_, err, code) = galatea(&folder, "run scaled.gpk --inputs z.safetensors --device cpu");
    let expected = "error: z.safetensors: tensor `z` is no input of the program\nhelp: its inputs are x\n";
    assert_eq!((&*err, code), (expected, 1));
    fs::write(path("z.safetensors"), "not tensors").unwrap();
    let (_, err, code) = galatea(&folder, "run scaled.gpk --inputs z.safetensors --device cpu");
    assert!(code == 1 && err.starts_with("error: z.safetensors: not a file of tensors: its header is too long\nhelp: "), "{err}");
}

#[test]
fn a_seed_repeats_the_inputs() {
    let folder = packages();
    let (first, ..) = galatea(&folder, "run scaled.gpk rows=5 --device cpu");
    let seed = first.strip_prefix("seed ").unwrap().split_once('\n').unwrap().0;
    assert_eq!(galatea(&folder, &format!("run scaled.gpk rows=5 --device cpu --seed {seed}")).0, first);
    assert_ne!(galatea(&folder, "run scaled.gpk rows=5 --device cpu --seed 1").0, first);
}

/// The size of the file depends on the compiler.
#[test]
fn memory_has_a_limit_in_mib() {
    let folder = packages();
    let run = |limit: &str| galatea(&folder, &format!("run scaled.gpk rows=3 --device cpu --untrusted --max-memory {limit}"));
    let (_, err, code) = run("0");
    let is_named = err.starts_with("error: scaled.gpk: the package needs ") && err.contains(" bytes of memory, and 0 is its limit\n");
    assert!(code == 1 && is_named && err.ends_with("help: if you want to run it, raise the limit: `--max-memory`\n"), "{err}");
    assert_eq!(run("64").2, 0);
    for (line, status) in [("inspect scaled.gpk", 1), ("inspect scaled.gpk --json", 1), ("diff scaled.gpk scaled.gpk", 2)] {
        let limited = |limit: u32| galatea(&folder, &format!("{line} --untrusted --max-memory {limit}"));
        let (_, err, code) = limited(0);
        assert!(code == status && err.contains("and 0 is its limit\n") && err.ends_with("`--max-memory`\n"), "{line}: {err}");
        assert_eq!(limited(64).2, 0, "{line}");
    }
}

/// Each defect is one line that begins with `wrong`, and an error.
#[test]
fn defects_have_a_line_and_an_error() {
    let folder = packages();
    let file = fs::read(folder.path().join("scaled.gpk")).unwrap();
    let verify = |from: &str, to: &str| {
        let at = file.windows(from.len()).position(|bytes| bytes == from.as_bytes()).unwrap();
        let mut bytes = file.clone();
        bytes[at..at + from.len()].copy_from_slice(to.as_bytes());
        fs::write(folder.path().join("bad.gpk"), bytes).unwrap();
        let (out, err, code) = galatea(&folder, "verify bad.gpk");
        assert_eq!(code, 1, "{out}{err}");
        let wrong: Vec<String> = out.lines().filter_map(|line| line.strip_prefix("wrong  ")).map(str::to_owned).collect();
        (wrong, err)
    };
    // The checksum of the plan does not fit either.
    let (wrong, err) = verify("\"launch\": 0", "\"launch\": 7");
    assert_eq!(wrong.len(), 2, "{wrong:?}");
    assert!(err.contains("error: bad.gpk: entry `plan.json` has changed since it was written\n"), "{err}");
    assert!(err.contains("error: bad.gpk: step 1: a launch names a kernel that does not exist\n"), "{err}");
    // The manifest has a checksum of another kind.
    let (wrong, err) = verify("\"num_warps\": 4", "\"num_warps\": 8");
    assert_eq!(wrong, ["the structure of the file"]);
    assert!(err.contains("error: bad.gpk: entry `manifest.json` has changed since it was written\n"), "{err}");
}
