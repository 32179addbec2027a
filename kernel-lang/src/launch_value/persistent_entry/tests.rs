//! The comment of a persistent entry: round trips, malformed comments, and tensors that no map describes.

use super::*;

fn entry() -> PersistentEntry {
    let matrix = TensorMap {
        dtype: Dtype::Bf16,
        tf32: false,
        block: vec![64, 128],
        swizzle: 128,
        address: 1,
        extents: vec![2, 3],
        strides: vec![4],
    };
    let row = TensorMap { dtype: Dtype::F32, tf32: false, block: vec![8], swizzle: 0, address: 1, extents: vec![2], strides: Vec::new() };
    PersistentEntry {
        name: "matmul_blocks".to_owned(),
        threads: 384,
        shared_bytes: 213_000,
        ctas_per_multiprocessor: 1,
        maps: vec![matrix, row],
    }
}

/// The launch values of the usual entry, which has one, and of the persistent entry.
const USUAL: &str = ".version 8.0

// launch values:
// kernel @launch_values(%x: ptr<bf16>, %m: i64, %n: i64) {
//     %1 = launch_value () {
//         %0 = mul %m, %n : i64
//         yield %0
//     } : i64
//     return
// }

.visible .entry matmul()
.reqntid 128, 1, 1
{
}

";
const VALUES: &str = "// launch values:
// kernel @launch_values(%x: ptr<bf16>, %m: i64, %n: i64) {
//     %10, %11, %12, %13, %14, %15 = launch_value () {
//         %0 = address %x : i64
//         %1 = const {value = 15} : i64
//         %2 = and %0, %1 : i64
//         %3 = const {value = 0} : i64
//         %4 = eq %2, %3 : bool
//         %5 = program_id : i64
//         %6 = lt %5, %m : bool
//         yield %4, %0, %n, %m, %n, %6
//     } : bool, i64, i64, i64, i64, bool
//     return
// }

.visible .entry matmul_blocks()
.reqntid 384, 1, 1
{
}
";

fn module(entry: impl fmt::Display) -> String {
    format!("{USUAL}{entry}{VALUES}")
}

#[test]
fn an_entry_is_read_as_it_was_written() {
    let ptx = module(entry());
    let (read, values) = PersistentEntry::of_ptx(&ptx).unwrap().unwrap();
    assert_eq!((read, values.parameter_count()), (entry(), 7));
    assert!(ptx.contains(
        "\n// map_0: bf16, box [64, 128], swizzle 128, address launch_1, extents [launch_2, launch_3], strides [launch_4]\n\
         // map_1: f32, box [8], swizzle 0, address launch_1, extents [launch_2], strides []\n// launch values:\n"
    ));
}

#[test]
fn each_entry_has_its_own_launch_values() {
    let ptx = module(entry());
    let own = LaunchValues::of_ptx(&ptx).unwrap().unwrap();
    assert_eq!(own.parameters(&[0, 0, 6, 7], [1, 1, 1]), [42]);
    let (_, values) = PersistentEntry::of_ptx(&ptx).unwrap().unwrap();
    assert_eq!(values.parameters(&[0x1230, 0, 6, 7], [5, 1, 1]), [1, 0x1230, 7, 6, 7, 5, 1]);
    assert_eq!(values.asked()[0], u64::MAX, "an address counts as a whole");
    // A usual entry without any.
    let ptx = format!(".version 8.0\n{}{VALUES}", entry());
    assert!(LaunchValues::of_ptx(&ptx).unwrap().is_none());
    assert!(PersistentEntry::of_ptx(&ptx).unwrap().is_some());
    assert!(PersistentEntry::of_ptx(USUAL).unwrap().is_none());
    let (usual, own) = split_entries(&ptx);
    assert_eq!((usual.len() + own.unwrap().len(), own.unwrap().starts_with("// persistent entry")), (ptx.len(), true));
}

/// Texts of the compiler are separated in `tests/separate_modules.rs`.
#[test]
fn each_module_has_its_entry_and_what_both_share() {
    let head = ".version 8.0\n.address_size 64\n.const .align 4 .b32 table[1] = {1};\n.extern .shared .align 1024 .b8 shared[];\n";
    let ptx = module(entry()).replacen(".version 8.0\n", &format!("//\n// matmul\n//\n\n{head}"), 1) + "\n.file 1 \"a.rs\"\n";
    // As it is, and as packages have it: without empty lines.
    for ptx in [ptx.clone(), ptx.replace("\n\n", "\n")] {
        let (usual, persistent) = separate_modules(&ptx);
        let persistent = persistent.unwrap();
        assert_eq!([&usual, &persistent].map(|part| split_entries(part).1.is_some()), [false, true]);
        assert_eq!(LaunchValues::of_ptx(&usual).unwrap().unwrap().parameters(&[0, 0, 6, 7], [1, 1, 1]), [42]);
        assert_eq!(PersistentEntry::of_ptx(&persistent).unwrap().unwrap().0, entry());
        let entries = |part: &str| [".entry matmul(", ".entry matmul_blocks("].map(|name| part.contains(name));
        assert_eq!([entries(&usual), entries(&persistent)], [[true, false], [false, true]]);
        assert!(persistent.starts_with(head) && usual.contains(head));
        assert!(
            [&usual, &persistent].iter().all(|part| part.ends_with("}\n\n.file 1 \"a.rs\"\n") || part.ends_with("}\n.file 1 \"a.rs\"\n"))
        );
    }
    assert_eq!(separate_modules(USUAL), (USUAL.into(), None));
}

#[test]
fn entries_that_share_more_stay_together() {
    let ptx = module(entry());
    for (from, to) in [
        (".version 8.0\n", ".version 8.0\n.global .b32 counter;\n"),
        (".version 8.0\n", ".version 8.0\n.const .b32 table[2] = {\n1, 2};\n"),
        (".version 8.0\n", ".version 8.0\n.visible .entry other()\n{\n}\n"),
        ("}\n\n// persistent", "}\n.global .b32 counter;\n\n// persistent"),
        (".visible .entry matmul_blocks", ".visible .entry other()\n{\n}\n.visible .entry matmul_blocks"),
        (".visible .entry matmul_blocks", ".entry matmul_blocks"),
        (".visible .entry matmul(", ".entry matmul("),
    ] {
        assert!(ptx.contains(from), "{from}");
        let ptx = ptx.replacen(from, to, 1);
        assert_eq!(separate_modules(&ptx), (ptx.as_str().into(), Some(ptx.as_str().into())), "{from} -> {to}");
    }
    let followed = format!("{ptx}.global .b32 counter;\n");
    assert_eq!(separate_modules(&followed), (followed.as_str().into(), Some(followed.as_str().into())));
}

#[test]
fn a_comment_of_another_form_is_refused() {
    let refused = |from: &str, to: &str, message: &str| {
        let ptx = module(entry());
        assert!(ptx.contains(from), "{from}");
        let error = PersistentEntry::of_ptx(&ptx.replacen(from, to, 1)).unwrap_err();
        assert_eq!(error, format!("the comment with the persistent entry: {message}"), "{from} -> {to}");
    };
    refused("entry: matmul_blocks", "entry: ", "the entry has no name");
    refused("entry: matmul_blocks", "entry: matmul blocks", "the entry has no name");
    let threads = "a CTA has whole warps of up to 1024 threads, not";
    refused("384 threads and", "0 threads and", &format!("{threads} 0 threads"));
    refused("384 threads and", "100 threads and", &format!("{threads} 100 threads"));
    refused("384 threads and", "1056 threads and", &format!("{threads} 1056 threads"));
    refused(", 1 CTAs", ", 0 CTAs", "a multiprocessor holds 1 to 32 CTAs, not 0");
    refused("box [64, 128]", "box [64, 257]", "an extent of the box of a tensor map is 1 to 256, not 257");
    refused("box [64, 128]", "box [64, 0]", "an extent of the box of a tensor map is 1 to 256, not 0");
    let axes = "a tensor map has 1 to 5 extents, as many of its box, and one stride less";
    refused("box [64, 128]", "box [64]", axes);
    refused("strides [launch_4]", "strides []", axes);
    refused("box [64, 128]", "box [60, 128]", "a box with rows of 120 bytes cannot have the swizzle 128");
    refused("swizzle 128", "swizzle 64", "a box with rows of 128 bytes cannot have the swizzle 64");
    refused("swizzle 128", "swizzle 16", "a box with rows of 128 bytes cannot have the swizzle 16");
    refused("extents [launch_2, launch_3]", "extents [launch_2, launch_5]", "`launch_5` is no `i64` that is the same in all programs");
    refused("address launch_1", "address launch_0", "`launch_0` is no `i64` that is the same in all programs");
    refused("address launch_1", "address launch_9", "`launch_9` is no `i64` that is the same in all programs");
    refused(
        "yield %4, %0, %n, %m, %n, %6\n//     } : bool,",
        "yield %m, %0, %n, %m, %n, %6\n//     } : i64,",
        "the first launch value is no `bool`",
    );
    refused("\n{\n}\n\n// persistent", "\n// persistent entry: a\n// persistent", "there is more than one");
    assert!(PersistentEntry::of_ptx("\n// persistent entry: a\n").unwrap_err().ends_with("it states no launch values"));
}

#[test]
fn a_line_without_its_parts_is_malformed() {
    let map = format!("// map_0: {}", entry().maps[0]);
    let size = "// 384 threads and 213000 bytes of shared memory a CTA, 1 CTAs a multiprocessor".to_owned();
    for (line, from, to) in [
        (&size, "384", "0384"),
        (&size, "384", "+384"),
        (&size, "384", "99999999999"),
        (&size, " bytes", "bytes"),
        (&size, "multiprocessor", "multiprocessor "),
        (&map, "map_0", "map_1"),
        (&map, "bf16", "bf17"),
        (&map, "64, 128]", "64,128]"),
        (&map, "[64, 128]", "[1, 1, 1, 1, 1, 1]"),
        (&map, "swizzle 128", "swizzle"),
        (&map, "launch_1,", "launch_64,"),
        (&map, "launch_1,", "launch_01,"),
        (&map, "[launch_4]", "[launch_4"),
        (&map, "// map", "//map"),
    ] {
        let changed = line.replacen(from, to, 1);
        let error = PersistentEntry::of_ptx(&module(entry()).replacen(line, &changed, 1)).unwrap_err();
        let shown: String = changed.chars().take(80).collect();
        assert_eq!(error, format!("the comment with the persistent entry: `{shown}` is malformed"));
    }
    let many = PersistentEntry { maps: vec![entry().maps[0].clone(); MOST_MAPS + 1], ..entry() };
    assert!(PersistentEntry::of_ptx(&module(many)).unwrap_err().ends_with("an entry has at most 16 tensor maps"));
}

#[test]
fn a_damaged_comment_is_an_error_or_an_entry() {
    let ptx = module(entry());
    let start = ptx.find("// persistent").unwrap();
    for at in start..ptx.len() {
        let _ = PersistentEntry::of_ptx(&ptx[..at]);
        for byte in ["\n", " ", "9", "[", "é"] {
            let _ = PersistentEntry::of_ptx(&[&ptx[..at], byte, &ptx[at + 1..]].concat());
        }
    }
}

#[test]
fn a_tensor_that_no_map_describes_has_none() {
    let matrix = &entry().maps[0];
    let tensor = |address, m, n, stride| matrix.tensor(&[1, address, n, m, stride]);
    let expected = MappedTensor { address: 0x1000, extents: vec![100, 7], byte_strides: vec![208] };
    assert_eq!(tensor(0x1000, 7, 100, 104), Some(expected));
    assert_eq!(tensor(0x1008, 7, 100, 104), None, "the address");
    assert_eq!(tensor(0x1000, 7, 100, 100), None, "a stride of 200 bytes");
    assert_eq!(tensor(0x1000, 7, 100, 1 << 39), None, "a stride of 2^40 bytes");
    assert_eq!(tensor(0x1000, 7, 100, -104_i64 as u64), None, "a negative stride");
    assert_eq!(tensor(0x1000, 0, 100, 104), None, "no rows");
    assert_eq!(tensor(0x1000, 7, (1 << 32) + 1, 104), None, "an extent above 2^32");
    assert_eq!(matrix.tensor(&[1]), None);
}
