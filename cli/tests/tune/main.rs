//! `galatea tune` as a user calls it. The program that it runs is this executable once more, which tunes on a simulated GPU.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use galatea::cache::Records;
use galatea::prelude::*;
use galatea::tune;
use libtest_mimic::{Arguments, Trial};

/// Says to this executable that it is the program, and what it does.
const PROGRAM: &str = "GALATEA_TUNE_TEST";

#[autotune(configs = [Config { BLOCK_SIZE: 32, num_warps: 1 }, Config { BLOCK_SIZE: 256, num_warps: 2 }], key = [n], restore_value = [x])]
#[kernel]
fn halve<T: Float, const BLOCK_SIZE: usize>(x: PtrMut<T>, n: usize) {
    let offsets = program_id(0) * BLOCK_SIZE + arange(0, BLOCK_SIZE);
    store(x + offsets, load(x + offsets, mask = offsets < n) / 2.0, mask = offsets < n);
}

fn tune_for<T: Float>(device: &Device, n: usize) -> galatea::Result<()> {
    halve(&mut device.zeros::<T>(n)?, n).grid(|config| cdiv(n, config.BLOCK_SIZE)).launch()
}

/// Tunes for each row.
fn program(fails: bool) -> galatea::Result<()> {
    let device = Device::default()?;
    for row in tune::shapes("halve")? {
        let n = row.get("n")?;
        match row.get("T")? {
            galatea::Dtype::F32 => tune_for::<f32>(&device, n)?,
            _ => tune_for::<f16>(&device, n)?,
        }
    }
    if fails {
        tune::shapes("halve")?.next().map_or(Ok(0), |row| row.get::<usize>("columns"))?;
    }
    Ok(())
}

/// Runs `galatea tune` in a folder, with a store in it.
fn galatea(folder: &Path, shapes: &str, arguments: &[&str], program: &str) -> (String, String, Option<i32>) {
    fs::write(folder.join("shapes.json"), shapes).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_galatea"));
    command.current_dir(folder).args(["tune", "shapes.json"]).args(arguments).arg("--").arg(std::env::current_exe().unwrap());
    command.env(PROGRAM, program).env("GALATEA_CACHE", folder.join("store")).env("GALATEA_DEVICE", "sim");
    command.env("CARGO_TERM_COLOR", "never");
    let Output { status, stdout, stderr } = command.output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (text(stdout), text(stderr), status.code())
}

const SHAPES: &str = r#"{ "halve": [{ "n": 1000, "T": "f32" }, { "n": 513, "T": "f16" }, { "n": 513, "T": "f32" }] }"#;

fn the_chosen_configurations_are_shown_and_written() {
    let folder = tempfile::tempdir().unwrap();
    let records = ["--records", "tuned/sim.json"];
    let (out, err, code) = galatea(folder.path(), SHAPES, &records, "tunes");
    assert!(code == Some(0) && err.is_empty(), "{out}{err}");
    let lines: Vec<&str> = out.lines().collect();
    assert!(lines[0].starts_with("halve on simulated H200 (sm_90a), driver simulator "), "{out}");
    assert!(lines[1].starts_with("  FOR ") && lines[1].contains("CHOSEN") && lines[1].contains("NEXT BEST"), "{out}");
    for (line, shape) in lines[2..5].iter().zip(["T = f32, n = 1000", "T = f16, n = 513", "T = f32, n = 513"]) {
        assert!(
            line.starts_with(&format!("  {shape} "))
                && line.contains(" us  +")
                && line.contains("BLOCK_SIZE: ")
                && line.contains("now, in "),
            "{line}"
        );
    }
    assert!(lines[5].starts_with("3 keys: 3 tuned in ") && lines[5].ends_with(", 0 known already"), "{out}");
    assert_eq!(lines[6..], ["tuned/sim.json holds 3 records: 3 new, 0 in the place of older ones"]);
    let file = fs::read_to_string(folder.path().join("tuned/sim.json")).unwrap();
    assert_eq!(Records::parse(&file).unwrap().len(), 3);
    let exported = Records::of_store(&galatea::cache::Store::open(folder.path().join("store"))).unwrap();
    assert_eq!(file, exported.to_string(), "an export writes the same");

    // Once more nothing is tuned, and one row more is one record more.
    let more = SHAPES.replace("[{", r#"[{ "n": 64, "T": "f32" }, {"#);
    let (out, _, _) = galatea(folder.path(), &more, &records, "tunes");
    assert!(out.contains("known from the disk") && out.contains("4 keys: 1 tuned in "), "{out}");
    assert!(out.contains("holds 4 records: 1 new, 3 in the place of older ones\n"), "{out}");
    let (out, _, _) = galatea(folder.path(), &more, &["--again"], "tunes");
    assert!(out.contains("4 keys: 4 tuned in ") && out.ends_with("0 known already\n"), "{out}");
}

fn older_records_are_replaced_and_others_stay() {
    let folder = tempfile::tempdir().unwrap();
    let records = ["--records", "tuned.json"];
    galatea(folder.path(), SHAPES, &records, "tunes");
    let file = folder.path().join("tuned.json");
    let first = fs::read_to_string(&file).unwrap();
    // Those of an edited kernel, and those of another GPU.
    let content = Records::parse(&first).unwrap().iter().next().unwrap().of.content.clone();
    let [edited, elsewhere] = [first.replace(&content, "edited"), first.replace("simulated H200 (sm_90a)", "NVIDIA A100")];
    let both: Records =
        [edited, elsewhere.clone()].iter().flat_map(|text| Records::parse(text).unwrap().iter().cloned().collect::<Vec<_>>()).collect();
    fs::write(&file, both.to_string()).unwrap();
    let (out, _, _) = galatea(folder.path(), SHAPES, &records, "tunes");
    assert!(out.contains("tuned.json holds 6 records: 0 new, 3 in the place of older ones\n"), "{out}");
    let all = Records::parse(&fs::read_to_string(&file).unwrap()).unwrap();
    let expected: Records =
        [first, elsewhere].iter().flat_map(|text| Records::parse(text).unwrap().iter().cloned().collect::<Vec<_>>()).collect();
    assert_eq!(all, expected);

    // One record takes the place of those of two drivers.
    let of_driver = |driver: &str| {
        let mut records: Vec<_> = all.iter().filter(|record| record.of.device.starts_with("simulated")).cloned().collect();
        records.iter_mut().for_each(|record| driver.clone_into(&mut record.of.driver));
        records
    };
    let two: Records = ["older", "newer"].into_iter().flat_map(of_driver).collect();
    fs::write(&file, two.to_string()).unwrap();
    let (out, err, code) = galatea(folder.path(), SHAPES, &records, "tunes");
    assert!(code == Some(0) && out.contains("tuned.json holds 3 records: 0 new, 3 in the place of older ones\n"), "{out}{err}");
}

fn mistakes_are_explained() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let run = |shapes: &str, arguments: &[&str], program: &str| {
        let (out, err, code) = galatea(path, shapes, arguments, program);
        (format!("{out}{err}"), code)
    };
    let (text, code) = run(r#"{ "halve": 7 }"#, &[], "tunes");
    assert!(code == Some(1) && text.contains("error: shapes.json: a list of rows is wanted for `halve`\nhelp: "), "{text}");
    let (text, code) = run(r#"{ "halve": [{ "m": 7 }] }"#, &["--records", "tuned.json"], "tunes");
    assert!(
        code == Some(3) && text.contains("row 1 of `halve` has no field `n`; it has `m`") && text.contains("ended with exit status: 3"),
        "{text}"
    );
    assert_eq!(fs::read_to_string(path.join("tuned.json")).unwrap(), Records::default().to_string(), "it can be embedded");
    let (text, code) = run(SHAPES, &["--records", "tuned.json"], "fails");
    assert!(code == Some(3) && text.contains("no field `columns`") && text.contains("no records are written"), "{text}");
    let (text, code) = run(r#"{ "halve": [], "mul": [{ "n": 7 }] }"#, &[], "tunes");
    assert!(code == Some(1) && text.contains(" tuned nothing\nhelp: "), "{text}");
    let (text, code) = run(&SHAPES.replace("}] }", r#"}], "mul": [{ "n": 7 }] }"#), &[], "tunes");
    assert!(code == Some(0) && text.contains("warning: `mul` of shapes.json was not tuned\nhelp: "), "{text}");
    fs::write(path.join("tuned.json"), "{}").unwrap();
    let (text, code) = run(SHAPES, &["--records", "tuned.json"], "tunes");
    assert!(code == Some(1) && text.contains("error: tuned.json: these are no records of tuning") && !text.contains("FOR"), "{text}");
}

fn main() {
    if let Some(what) = std::env::var_os(PROGRAM) {
        if let Err(error) = program(what == "fails") {
            eprintln!("error: {error}");
            std::process::exit(3);
        }
        return;
    }
    let tests: [(&str, fn()); 3] = [
        ("the_chosen_configurations_are_shown_and_written", the_chosen_configurations_are_shown_and_written),
        ("older_records_are_replaced_and_others_stay", older_records_are_replaced_and_others_stay),
        ("mistakes_are_explained", mistakes_are_explained),
    ];
    let trial = |(name, test): (&str, fn())| {
        Trial::test(name, move || {
            test();
            Ok(())
        })
    };
    libtest_mimic::run(&Arguments::from_args(), tests.into_iter().map(trial).collect()).exit();
}
