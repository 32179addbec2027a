//! Kernels that a stranger writes by hand, to reach memory, to crash, or to take much time or memory.

use std::time::{Duration, Instant};

use galatea::Device;
use kernel_graph::{Limits, Package};

use crate::changes::{entries, signed};
use crate::{allocator, alone, program};

/// The package of the program, whose first kernel has this body, and whose manifest and plan are changed.
fn forged(body: &str, json: &dyn Fn(&mut serde_json::Value, &mut serde_json::Value)) -> Vec<u8> {
    let mut of = entries(&Package::from_bytes(program::package(16)).unwrap());
    let at = |name: &str| of.iter().position(|(known, _)| known == name).unwrap();
    let (manifest, plan, ir) = (at("manifest.json"), at("plan.json"), at("kernels/0-scale.ir"));
    let head = "kernel @scale<T: f16 | bf16 | f32 | f64, const BLOCK: i64>(%y: ptr_mut<T>, %a: T, %b: i32, %n: i64)";
    of[ir].1 = format!("{head} {body}\n").into_bytes();
    let [mut manifest_json, mut plan_json] = [manifest, plan].map(|at| serde_json::from_slice(&of[at].1).unwrap());
    json(&mut manifest_json, &mut plan_json);
    of[manifest].1 = manifest_json.to_string().into_bytes();
    of[plan].1 = plan_json.to_string().into_bytes();
    signed(of)
}

/// How the package ends with these limits.
fn ends(file: Vec<u8>, limits: Limits) -> Result<(), String> {
    let session = Package::untrusted(file, limits).and_then(|package| package.load(&Device::cpu())).map_err(|error| error.to_string())?;
    session.run([&program::x()]).map(drop).map_err(|error| error.to_string())
}

fn error(file: Vec<u8>) -> String {
    ends(file, Limits::new()).expect_err("it is refused")
}

#[test]
fn ops_that_trust_their_author_are_refused() {
    let _alone = alone();
    let zero = "%0 = const {value = 0} : i64";
    let access = |attributes: &str| format!("{{\n {zero}\n %1 = load %y, %0 {{{attributes}}} : T\n store %y, %0, %1\n return\n}}");
    let with = |ops: &str| format!("{{\n {zero}\n {ops}\n return\n}}");
    let refused = [
        (access("in_bounds = true"), "has a `load` that no safe kernel has"),
        (access("align = 16"), "has a `load` that no safe kernel has"),
        (access("evict = \"evict_first_if_small\""), "has a `load` that no safe kernel has"),
        (with("store %y, %0, %a {in_bounds = true}"), "has a `store` that no safe kernel has"),
        (with("%1 = atomic %y, %0, %a {op = add, in_bounds = true} : T"), "no kernel"),
        (with("%1 = pointer %0 : ptr_mut<T>\n store %1, %0, %a"), "has a `pointer` that no safe kernel has"),
        (with("%1 = address %y : i64"), "has a `address`, which only trusted packages may have"),
        (with("%1 = inline_ptx %a {text = \"mov.b32 {0}, {1};\"} : f32"), "no kernel"),
        (with("%1 = launch_value () {\n  yield %0\n } : i64"), "has a `launch_value` that no safe kernel has"),
        ("unchecked {\n return\n}".to_owned(), "it is `unchecked`"),
        (with("%1 = butterfly %a {axis = 0, bit = 200} : T"), "no kernel"),
        (
            with("%1 = arange {start = 0, end = 64} : tile<i64, [64]>\n %2 = butterfly %1 {axis = 0, bit = 200} : tile<i64, [64]>"),
            "no bit 200",
        ),
    ];
    for (body, reason) in refused {
        let error = error(forged(&body, &|_, _| {}));
        assert!(error.contains(reason), "{body}: {error}");
    }
    let honest = with("store %y, %0, %a");
    assert!(ends(forged(&honest, &|_, _| {}), Limits::new()).is_ok());
}

/// Accesses behind and before each tensor. The allocator looks at the bytes around each allocation.
#[test]
fn accesses_outside_of_tensors_do_nothing() {
    let _alone = alone();
    let mut body = "{\n".to_owned();
    let offsets = [-1, 15, 16, 1 << 20, i64::MAX, i64::MIN];
    for (number, offset) in offsets.iter().enumerate() {
        body += &format!(" %o{number} = const {{value = {offset}}} : i64\n store %y, %o{number}, %a\n");
        body += &format!(
            " %r{number} = arange {{start = 0, end = 64}} : tile<i64, [64]>\n %s{number} = broadcast %o{number} : tile<i64, [64]>\n"
        );
        body += &format!(" %t{number} = add %r{number}, %s{number} : tile<i64, [64]>\n %u{number} = broadcast %a : tile<T, [64]>\n");
        body += &format!(" %v{number} = mul %t{number}, %t{number} : tile<i64, [64]>\n store %y, %t{number}, %u{number}\n");
        body += &format!(" store %y, %v{number}, %u{number}\n");
    }
    body += " return\n}";
    ends(forged(&body, &|_, _| {}), Limits::new()).unwrap();
}

#[test]
fn schedules_and_keys_are_those_of_kernels() {
    let _alone = alone();
    let body = "{\n return\n}";
    let stages = forged(body, &|manifest, _| manifest["kernels"][0]["schedule"]["num_stages"] = u32::MAX.into());
    assert!(error(stages).contains("its `num_stages` is 4294967295, and 1 to 16 are possible"));
    let dtype = forged(body, &|_, plan| plan["nodes"][0]["key"][0] = "0xff".into());
    assert!(error(dtype).contains("names no dtype that `T` can be"));
    let dtype = forged(body, &|_, plan| plan["nodes"][0]["key"][0] = "0x0".into());
    assert!(error(dtype).contains("names no dtype that `T` can be"));
    let extent = forged("{\n %0 = arange {start = 0, end = BLOCK} : tile<i64, [BLOCK]>\n return\n}", &|_, plan| {
        plan["nodes"][0]["key"][1] = "0xffffffffffffffff".into();
    });
    assert!(error(extent).contains("a tile is a positive number, not -1"));
}

/// Tiles that a program holds at the same time.
#[test]
fn tiles_are_counted_or_refused() {
    let _alone = alone();
    let body = |tiles: usize| {
        let mut body = "{\n %i = arange {start = 0, end = 1048576} : tile<i64, [1048576]>\n".to_owned();
        for tile in 0..tiles {
            body += &format!(
                " %t{tile} = mul %i, %{} : tile<i64, [1048576]>\n",
                if tile == 0 { "i".to_owned() } else { format!("t{}", tile - 1) }
            );
        }
        // All of them are used at the end.
        for tile in 0..tiles {
            body += &format!(" %u{tile} = cast %t{tile} : tile<T, [1048576]>\n store %y, %i, %u{tile}\n");
        }
        body + " return\n}"
    };
    let (few, many) = (forged(&body(4), &|_, _| {}), forged(&body(200), &|_, _| {}));
    let limits = Limits::new().memory(64 << 20);
    let before = allocator::begin();
    let error = ends(few.clone(), limits).unwrap_err();
    assert!(error.contains("bytes of memory, and 67108864 is its limit"), "{error}");
    let error = ends(many, limits).unwrap_err();
    assert!(error.contains("needs more than 1024 MiB for its tiles"), "{error}");
    assert!(allocator::taken(before) < 64 << 20, "{}", allocator::taken(before));
}

/// Static loops that a short text states.
#[test]
fn what_a_short_text_unrolls_to_is_bounded() {
    let _alone = alone();
    let body = |inner: usize| {
        format!(
            "{{\n static_for {{index = \"i\", start = 0, end = 4096, step = 1}} () {{\n  static_for {{index = \"j\", start = 0, end = {inner}, step = 1}} () {{\n   \
             %0 = const {{value = ((i * 977) + j)}} : i64\n   %1 = cast %0 : T\n   store %y, %0, %1\n   yield\n  }}\n  yield\n }}\n return\n}}"
        )
    };
    let error = error(forged(&body(4096), &|_, _| {}));
    assert!(error.contains("computes more than 131072 values"), "{error}");
    // What it takes is counted before it is compiled.
    let package = forged(&body(3), &|_, _| {});
    let before = allocator::begin();
    let error = ends(package.clone(), Limits::new().memory(48 << 20)).unwrap_err();
    assert!(error.contains("and 50331648 is its limit") && allocator::taken(before) < 1 << 20, "{error}: {}", allocator::taken(before));
    let before = allocator::begin();
    let most = ends(package, Limits::new());
    assert!(most.is_ok() && allocator::taken(before) < 96 << 20, "{most:?}: {}", allocator::taken(before));
}

/// A plan of launches that are all compiled.
#[test]
fn loading_ends_in_time() {
    let _alone = alone();
    let body = "{\n %0 = const {value = BLOCK} : i64\n %1 = cast %0 : T\n store %y, %0, %1\n return\n}";
    let file = forged(body, &|_, plan| {
        let node = plan["nodes"][0].clone();
        let launches = (0..20_000).map(|number| {
            let mut node = node.clone();
            node["key"][1] = format!("{number:#x}").into();
            node["results"][0] = (1 + number).into();
            node["args"][0]["writes"] = number.into();
            node
        });
        plan["nodes"] = launches.collect();
        let ty = plan["values"][0].clone();
        plan["values"] = (0..20_002).map(|_| ty.clone()).collect();
        plan["constants"][0]["value"] = 20_001.into();
        plan["outputs"] = serde_json::json!([1]);
        plan["values"][20_001] = "f32[16]".into();
    });
    let begin = Instant::now();
    let error = ends(file, Limits::new().time(Duration::from_millis(100))).unwrap_err();
    assert!(error.contains("longer to compile than 100ms"), "{error}");
    assert!(begin.elapsed() < Duration::from_secs(30), "{:?}", begin.elapsed());
}

/// Extents whose products no memory has.
#[test]
fn extents_that_overflow_are_errors() {
    let _alone = alone();
    for ty in ["f32[9223372036854775807]", "f32[9223372036854775807, 9223372036854775807]", "f64[rows, 4611686018427387904]"] {
        let file = forged("{\n return\n}", &|_, plan| plan["values"][2] = ty.into());
        let error = error(file);
        assert!(["limit", "another type", "dim", "too large", "overflow"].iter().any(|word| error.contains(word)), "{ty}: {error}");
    }
}

/// The memory of kernels, which no process frees, has an end. In a process of its own: this one needs its kernels.
#[test]
fn kernels_that_are_never_freed_have_a_limit() {
    if std::env::var_os("GALATEA_KERNELS").is_none() {
        let mut child = std::process::Command::new(std::env::current_exe().unwrap());
        child.args(["--exact", "forged::kernels_that_are_never_freed_have_a_limit"]).env("GALATEA_KERNELS", "1");
        let output = child.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        return;
    }
    let outcome = |number: usize| {
        let body = format!("{{\n{} return\n}}", format!("; {number} {}\n", "-".repeat(100)).repeat(6000));
        ends(forged(&body, &|_, _| {}), Limits::new())
    };
    let ended: Vec<Result<(), String>> = (0..10).map(outcome).collect();
    assert!(ended[0].is_ok(), "{:?}", ended[0]);
    let error = ended[9].as_ref().unwrap_err();
    assert!(error.contains("the kernels of untrusted packages would take") && error.contains("268435456 are the most"), "{error}");
    // Kernels that the process knows take nothing.
    assert_eq!(outcome(0), Ok(()));
}

/// A stranger's tuner: it would take hours, it names a record, and its configurations are those of another kernel.
#[test]
fn launches_of_strangers_are_not_tuned() {
    let _alone = alone();
    let (first, second) = (Device::sim(galatea::Target::SM_80).unwrap(), Device::cpu());
    let forged = |change: &dyn Fn(&mut serde_json::Value)| {
        let mut of = entries(&Package::from_bytes(program::package(16)).unwrap());
        let (_, plan) = of.iter_mut().find(|(name, _)| name == "plan.json").unwrap();
        let mut json: serde_json::Value = serde_json::from_slice(plan).unwrap();
        change(json["nodes"].as_array_mut().unwrap().iter_mut().find_map(|node| node.get_mut("tuning")).unwrap());
        *plan = json.to_string().into_bytes();
        signed(of)
    };
    let load = |file: Vec<u8>, device: &Device| Package::untrusted(file, Limits::new()).and_then(|package| package.load(device));
    let configs = |session: &kernel_graph::Session| -> Vec<String> {
        let tuning = session.plan().nodes.iter().find_map(|node| match &node.op {
            kernel_graph::NodeOp::Launch(launch) => launch.tuning(),
            _ => None,
        });
        let tuning = tuning.unwrap();
        assert!(tuning.parts().unwrap().records.is_empty());
        tuning.configs().iter().map(|config| config.text.clone()).collect()
    };
    let greedy = forged(&|tuning| {
        (tuning["warmup"], tuning["rep"]) = (u32::MAX.into(), u32::MAX.into());
        tuning["zeroed"] = serde_json::json!([0, 1, u32::MAX]);
        tuning["records"] = serde_json::json!([["records.json", "{ \"format\": \"galatea tuning records 2\", \"records\": [] }"]]);
    });
    for device in [&first, &second] {
        let session = load(greedy.clone(), device).unwrap();
        assert_eq!(configs(&session).len(), 1);
        let outputs = session.run([&program::x().to_device(device).unwrap()]).unwrap();
        let squares: Vec<f32> = program::x().to_vec::<f32>().unwrap().iter().map(|x| x * x).collect();
        assert_eq!(outputs[2].to_vec::<f32>().unwrap(), squares);
    }
    // The first configuration does not compile: the second one serves.
    let large = forged(&|tuning| tuning["configs"][0]["key"][1] = "0x7fffffffffffffff".into());
    for device in [&first, &second] {
        assert_eq!(configs(&load(large.clone(), device).unwrap()), ["Config { BLOCK: 64, num_warps: 2, num_stages: 3 }"]);
    }
    type Change<'c> = &'c dyn Fn(&mut serde_json::Value);
    let refused: [(Change<'_>, &str); 7] = [
        (&|tuning| tuning["configs"] = serde_json::json!([]), "a launch has no configuration"),
        (&|tuning| tuning["configs"][0]["key"][0] = "0xff".into(), "has other types than its launch"),
        (&|tuning| tuning["configs"][0]["key"] = serde_json::json!([]), "has other types than its launch"),
        (&|tuning| tuning["key"] = vec!["0x0"; 200].into(), "has other types than its launch"),
        (&|tuning| tuning["configs"][0]["schedule"]["num_warps"] = 3.into(), "a schedule that is not possible"),
        (&|tuning| tuning["configs"][0]["schedule"]["num_stages"] = 1000.into(), "more stages than a loop can"),
        (
            &|tuning| tuning["configs"].as_array_mut().unwrap().iter_mut().for_each(|config| config["pruned"] = true.into()),
            "`prune` rejects all configurations",
        ),
    ];
    for (change, reason) in refused {
        let error = load(forged(change), &second).expect_err(reason).to_string();
        assert!(error.contains(reason), "{reason}: {error}");
    }
}
