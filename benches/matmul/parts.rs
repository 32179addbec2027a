//! Tests the parts of the benchmark of matrix products that need no GPU: the products, the command line and the table.

mod cases;
mod options;
mod table;

use std::path::PathBuf;
use std::time::Duration;

use cases::{CLASSES, Case, Kind, Layout, sweep, targets};
use options::Options;
use table::{Row, geometric_mean, table};

#[test]
fn the_sweep_has_sixty_products_in_all_layouts() {
    let cases = sweep();
    assert_eq!(cases.len(), 60);
    for (at, case) in cases.iter().enumerate() {
        assert!(!cases[..at].iter().any(|other| other.extents() == case.extents()), "{case:?} is listed twice");
        assert!([case.columns, case.inner].iter().all(|extent| (128..=16_384).contains(extent)) && case.rows <= 16_384, "{case:?}");
    }
    for class in CLASSES {
        let of_class: Vec<&Case> = cases.iter().filter(|case| case.class == class).collect();
        assert!(Layout::ALL.iter().all(|layout| of_class.iter().any(|case| case.layout == *layout)), "{class}");
        for case in of_class {
            let Case { rows, columns, inner, .. } = *case;
            let fits = match class {
                "square" => rows == columns && columns == inner,
                "tall" => rows >= 4 * columns,
                "wide" => columns >= 4 * rows,
                "ragged" => [rows, columns, inner].iter().all(|extent| !extent.is_multiple_of(8)),
                _ => (1..=64).contains(&rows),
            };
            assert!(fits && (class == "decode" || rows >= 128), "{case:?}");
        }
    }
}

#[test]
fn the_targets_are_thirteen() {
    let names: Vec<String> = targets().iter().map(|case| format!("{:?} {} {}", case.extents(), case.layout, case.kind.name())).collect();
    assert_eq!(names.len(), 13);
    let some = [0, 4, 8, 9, 12].map(|number| names[number].as_str());
    let wanted = [
        "[1024, 1024, 1024] NN bf16",
        "[2048, 2048, 2048] NT bf16",
        "[16, 8192, 8192] NN bf16",
        "[4096, 4096, 4096] NN tf32",
        "[8192, 8192, 8192] NT f8e4m3",
    ];
    assert_eq!(some, wanted);
}

#[test]
fn layouts_are_read_as_they_are_written() {
    for layout in Layout::ALL {
        assert_eq!(layout.to_string().to_lowercase().parse(), Ok(layout));
    }
    assert_eq!(Layout::ALL.map(Layout::transposed), [(false, false), (false, true), (true, false), (true, true)]);
    assert!("N".parse::<Layout>().unwrap_err().contains("NN, NT, TN and TT"));
}

#[test]
fn the_layout_gives_the_shapes_in_memory() {
    let shapes = |layout| Case::new("", [2, 3, 5], layout).shapes();
    assert_eq!(shapes(Layout::NN), [[2, 5], [5, 3], [2, 3]]);
    assert_eq!(shapes(Layout::NT), [[2, 5], [3, 5], [2, 3]]);
    assert_eq!(shapes(Layout::TN), [[5, 2], [5, 3], [2, 3]]);
    assert_eq!(shapes(Layout::TT), [[5, 2], [3, 5], [2, 3]]);
}

fn read(line: &str) -> Result<Options, String> {
    Options::read(line.split_whitespace().map(str::to_owned), 5)
}

#[test]
fn without_words_the_targets_are_timed() {
    let options = read("").unwrap();
    assert_eq!(options.cases, targets());
    assert_eq!((options.rounds, options.warm, options.cool, options.budget), (5, Duration::from_secs(1), Duration::ZERO, None));
    assert_eq!(read("rows").unwrap(), options);
}

#[test]
fn a_sweep_is_shorter_for_each_product() {
    let options = read("sweep --budget 200 --out results.json").unwrap();
    assert_eq!((options.cases.len(), options.rounds, options.warm), (60, 3, Duration::from_millis(250)));
    assert_eq!((options.budget, options.out), (Some(Duration::from_secs(200)), Some(PathBuf::from("results.json"))));
    assert_eq!(read("sweep --rounds 7 --warm 0.5").map(|options| (options.rounds, options.warm)), Ok((7, Duration::from_millis(500))));
}

#[test]
fn products_are_selected_by_class_and_by_extents() {
    assert_eq!(read("ragged decode").unwrap().cases.len(), 29);
    let options = read("16 4096 128 nt f8e4m3 1000 1003 1017 --cool 2").unwrap();
    let expected =
        [Case::new("single", [16, 4096, 128], Layout::NT).of_kind(Kind::Float8), Case::new("single", [1000, 1003, 1017], Layout::NN)];
    assert_eq!((options.cases, options.cool), (expected.to_vec(), Duration::from_secs(2)));
}

#[test]
fn wrong_words_are_named() {
    for (line, expected) in [
        ("row", "unknown argument `row`"),
        ("--out", "`--out` needs a value"),
        ("16 4096", "`16` needs a value"),
        ("16 0 8", "`N` needs a positive integer, not `0`"),
        ("16 16 8 XY", "unknown argument `XY`"),
        ("16 16 16 NN f8e4m3", "the peers multiply `f8e4m3` in the layout NT only"),
        ("--cool -1", "`--cool` needs a number of seconds, not `-1`"),
        ("--rounds 0", "`--rounds` needs a positive integer, not `0`"),
    ] {
        let error = read(line).unwrap_err();
        assert!(error.starts_with(expected) && error.contains("help: products are"), "{line}: {error}");
    }
}

fn row(class: &'static str, shape: [usize; 3], ours_us: f64, peers: &[(&str, f64)], sm_mhz: Option<f64>) -> Row {
    let peers_us = peers.iter().map(|(peer, us)| ((*peer).to_owned(), *us)).collect();
    {
        let text = shape.map(|extent| extent.to_string()).join("x");
        Row { case: Case::new(class, shape, Layout::NT), shape: text, ours_us, peers_us, sm_mhz }
    }
}

#[test]
fn rows_show_the_best_version_and_means_leave_out_what_is_missing() {
    let rows = [
        row("square", [1000, 1000, 1000], 20.0, &[("cublas", 10.0), ("triton pointers", 80.0), ("triton persistent", 40.0)], Some(1755.0)),
        row("decode", [1, 1000, 1000], 5.0, &[("cublas", 10.0)], None),
    ];
    let expected = "\
| product | type | layout | ours | cuBLAS | Triton | version | of cuBLAS | of Triton | SM MHz |
|---|---|---|---:|---:|---:|---|---:|---:|---:|
| 1000x1000x1000 | bf16 | NT | 100.0 | 200.0 | 50.0 | persistent | 0.500x | 2.000x | 1755 |
| 1x1000x1000 | bf16 | NT | 0.4 | 0.2 | - | - | 2.000x | - | - |

square (1 products), geometric means: 0.500x of cuBLAS, 2.000x of Triton, 0.500x of the faster of them
decode (1 products), geometric means: 2.000x of cuBLAS, - of Triton, 2.000x of the faster of them
all (2 products), geometric means: 1.000x of cuBLAS, 2.000x of Triton, 1.000x of the faster of them
";
    assert_eq!(table(&rows), expected);
    assert_eq!(table(&rows[..1]).lines().count(), 5);
}

#[test]
fn the_mean_is_geometric() {
    assert_eq!(geometric_mean([0.25, 4.0].into_iter()), Some(1.0));
    assert_eq!(geometric_mean(std::iter::empty()), None);
}
