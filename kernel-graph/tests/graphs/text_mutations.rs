//! Changed texts of graphs: each is an error with its line and column, or the text of a graph. None panics or hangs.
//!
//! `GALATEA_MUTATIONS=20000 cargo test -p kernel-graph --test graphs text_mutations` makes as many changes of each text.

use std::time::{Duration, Instant};

use kernel_graph::{Graph, GraphError};

use crate::parse::texts;

/// A random number generator (xorshift).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % bound.max(1)
    }

    fn of<'a>(&mut self, items: &[&'a str]) -> &'a str {
        items[self.below(items.len())]
    }
}

/// Words, numbers, names, spaces and signs.
fn pieces(text: &str) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let is_word = |c: char| c.is_alphanumeric() || "_%@.".contains(c);
        let length = if is_word(first) { rest.find(|c| !is_word(c)).unwrap_or(rest.len()) } else { first.len_utf8() };
        pieces.push(&rest[..length]);
        rest = &rest[length..];
    }
    pieces
}

fn changed(text: &str, random: &mut Random) -> String {
    match random.below(3) {
        0 => {
            let mut chars: Vec<char> = text.chars().collect();
            for _ in 0..=random.below(3) {
                let at = random.below(chars.len());
                let c = "%@(){}[]<>,:=+-*/\"\\\n #.0123456789anx_\u{0}\u{e9}\u{1f600}".chars().nth(random.below(40)).unwrap_or('"');
                match random.below(3) {
                    0 => drop(chars.remove(at)),
                    1 => chars.insert(at, c),
                    _ => chars[at] = c,
                }
            }
            chars.into_iter().collect()
        }
        1 => {
            let mut words = pieces(text);
            let extra = [
                "9223372036854775807",
                "-1",
                "n",
                "n*n*n*n",
                "1e400",
                "NaN",
                "inf",
                "0x1f",
                "f64",
                "unused",
                "{",
                "}",
                "on cpu",
                "//",
                "((((",
                "2/0",
                "as i64",
            ];
            for _ in 0..=random.below(3) {
                let (at, other) = (random.below(words.len()), random.below(words.len()));
                let word = words[other];
                match random.below(5) {
                    0 => drop(words.remove(at)),
                    1 => words.insert(at, word),
                    2 => words.swap(at, other),
                    3 => words[at] = random.of(&extra),
                    _ => words[at] = word,
                }
            }
            words.concat()
        }
        _ => {
            let mut lines: Vec<&str> = text.split_inclusive('\n').collect();
            let (at, other) = (random.below(lines.len()), random.below(lines.len()));
            let line = lines[other];
            match random.below(4) {
                0 => drop(lines.remove(at)),
                1 => lines.insert(at, line),
                2 => lines.swap(at, other),
                _ => lines.truncate(at),
            }
            lines.concat()
        }
    }
}

pub(crate) fn changed_texts_are_errors_or_graphs() {
    let count: usize = std::env::var("GALATEA_MUTATIONS").map_or(700, |count| count.parse().expect("`GALATEA_MUTATIONS` is a number"));
    let seed = std::time::UNIX_EPOCH.elapsed().unwrap().as_nanos() as u64 | 1;
    let seed = std::env::var("GALATEA_SEED").map_or(seed, |seed| seed.parse().expect("`GALATEA_SEED` is a number"));
    println!("GALATEA_SEED={seed}");
    let (mut random, mut refused, mut slowest) = (Random(seed), 0, Duration::ZERO);
    let texts = texts();
    for (text, environment) in &texts {
        for _ in 0..count {
            let changed = changed(text, &mut random);
            let begin = Instant::now();
            match Graph::parse(&changed, environment) {
                Err(GraphError::Text(error)) => {
                    refused += 1;
                    let line = changed.split('\n').nth(error.line - 1).unwrap_or_else(|| panic!("{error}\nin\n{changed}"));
                    assert!((1..=line.chars().count() + 1).contains(&error.column), "{error}\nin\n{changed}");
                    assert!(!error.message.is_empty() && !error.message.contains('\n'), "{error}\nin\n{changed}");
                }
                Err(error) => panic!("{error} without a line\nin\n{changed}"),
                Ok(graph) => {
                    let again =
                        Graph::parse(&graph.to_string(), environment).unwrap_or_else(|error| panic!("{error}\nin\n{graph}\nof\n{changed}"));
                    assert_eq!(again.to_string(), graph.to_string(), "of\n{changed}");
                }
            }
            slowest = slowest.max(begin.elapsed());
        }
    }
    let all = count * texts.len();
    println!("{refused} of {all} texts are errors, the slowest takes {slowest:?}");
    assert!(refused > all / 2 && refused < all && slowest < Duration::from_secs(20), "{refused} of {all}, {slowest:?}");
}
