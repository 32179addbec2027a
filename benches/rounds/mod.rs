//! Times ours and the peers in rounds, and describes the run: its sizes and its commit.

use std::collections::BTreeMap;
use std::error::Error;
use std::process::Command;

use crate::peers::Peers;

pub(crate) const ROUNDS: usize = 5;

/// The times of ours and of the peers, by round.
#[derive(Default)]
pub(crate) struct Rounds {
    ours: Vec<f64>,
    theirs: BTreeMap<String, Vec<f64>>,
}

impl Rounds {
    /// Times ours and the peers once. The order alternates.
    pub(crate) fn time(&mut self, peers: &mut Peers, mut ours_us: impl FnMut() -> galatea::Result<f64>) -> Result<(), Box<dyn Error>> {
        let is_first = self.ours.len().is_multiple_of(2);
        if is_first {
            self.ours.push(ours_us()?);
        }
        for (peer, us) in peers.ask("time")?.as_object().ok_or("the peers gave no times")? {
            self.theirs.entry(peer.clone()).or_default().push(us.as_f64().ok_or("a peer gave no time")?);
        }
        if !is_first {
            self.ours.push(ours_us()?);
        }
        Ok(())
    }

    /// The medians in microseconds, of ours and of each peer.
    pub(crate) fn medians(self) -> (f64, BTreeMap<String, f64>) {
        (median(self.ours), self.theirs.into_iter().map(|(peer, times)| (peer, median(times))).collect())
    }
}

/// `2^27`, `2^27+3`, `8192x4096`.
pub(crate) fn shape_text(shape: &[usize]) -> String {
    match shape {
        [len] if len.is_power_of_two() => format!("2^{}", len.ilog2()),
        [len] => format!("2^{}+{}", len.ilog2(), len - (1 << len.ilog2())),
        sizes => sizes.iter().map(usize::to_string).collect::<Vec<_>>().join("x"),
    }
}

/// The commit that is measured: from a bundle's script, else from Git.
pub(crate) fn commit() -> String {
    let from_git = || {
        let output = Command::new("git").args(["describe", "--always", "--abbrev=12", "--dirty"]).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    std::env::var("GALATEA_COMMIT").ok().or_else(from_git).unwrap_or_else(|| "unknown".to_owned())
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}
