//! The command line of the benchmark.

use std::path::PathBuf;
use std::time::Duration;

use super::cases::{CLASSES, Case, Kind, Layout, sweep, targets};

/// More products than this are a sweep, in which a product is warmed up for a shorter time and has fewer rounds.
const FEW: usize = 16;

const HELP: &str = "help: products are `rows` (the targets), `sweep`, a class of the sweep (square, tall, wide, ragged, decode), or M N K, a layout and a type, \
                    as in `16 4096 4096 NT bf16`; options are `--out FILE`, `--budget SECONDS`, `--rounds NUMBER`, `--warm SECONDS` and `--cool SECONDS`";

/// What to time, and how.
#[derive(PartialEq, Debug)]
pub(crate) struct Options {
    pub(crate) cases: Vec<Case>,
    /// The file for the results.
    pub(crate) out: Option<PathBuf>,
    /// No product begins after this time.
    pub(crate) budget: Option<Duration>,
    pub(crate) rounds: usize,
    /// How long products run before the first round.
    pub(crate) warm: Duration,
    /// How long the GPU rests before each round.
    pub(crate) cool: Duration,
}

impl Options {
    /// Reads the words of a command line. A product has `rounds` rounds, and three in a sweep, unless the words say another number.
    ///
    /// # Errors
    /// A text for an unknown word, and for an option without a value that fits.
    pub(crate) fn read(words: impl IntoIterator<Item = String>, rounds: usize) -> Result<Options, String> {
        let mut words = words.into_iter().peekable();
        let (mut cases, mut out, mut budget, mut given_rounds, mut warm, mut cool) = (Vec::new(), None, None, None, None, None);
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or_else(|| format!("`{word}` needs a value\n{HELP}"));
            match word.as_str() {
                "--out" => out = Some(PathBuf::from(value()?)),
                "--budget" => budget = Some(seconds(&word, &value()?)?),
                "--warm" => warm = Some(seconds(&word, &value()?)?),
                "--cool" => cool = Some(seconds(&word, &value()?)?),
                "--rounds" => given_rounds = Some(positive(&word, &value()?)?),
                "rows" => cases.extend(targets()),
                "sweep" => cases.extend(sweep()),
                class if CLASSES.contains(&class) => cases.extend(sweep().into_iter().filter(|case| case.class == class)),
                number if number.starts_with(|first: char| first.is_ascii_digit()) => {
                    let shape = [positive("M", number)?, positive("N", &value()?)?, positive("K", &value()?)?];
                    let layout = words.next_if(|word| word.parse::<Layout>().is_ok());
                    let case = Case::new("single", shape, layout.map_or(Ok(Layout::NN), |layout| layout.parse())?);
                    let kind = words.next_if(|word| word.parse::<Kind>().is_ok());
                    let case = case.of_kind(kind.map_or(Ok(Kind::Bf16), |kind| kind.parse())?);
                    if case.kind == Kind::Float8 && case.layout != Layout::NT {
                        return Err(format!("the peers multiply `f8e4m3` in the layout NT only\n{HELP}"));
                    }
                    cases.push(case);
                }
                _ => return Err(format!("unknown argument `{word}`\n{HELP}")),
            }
        }
        if cases.is_empty() {
            cases = targets();
        }
        let (rounds, short) = if cases.len() > FEW { (3, Duration::from_millis(250)) } else { (rounds, Duration::from_secs(1)) };
        Ok(Options {
            cases,
            out,
            budget,
            rounds: given_rounds.unwrap_or(rounds),
            warm: warm.unwrap_or(short),
            cool: cool.unwrap_or_default(),
        })
    }
}

fn positive(name: &str, text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|number| *number > 0).ok_or_else(|| format!("`{name}` needs a positive integer, not `{text}`\n{HELP}"))
}

fn seconds(name: &str, text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    seconds.ok_or_else(|| format!("`{name}` needs a number of seconds, not `{text}`\n{HELP}"))
}
