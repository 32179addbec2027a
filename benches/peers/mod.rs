//! Triton and torch on the same GPU, in a child process: see `peers.py`, and `gallery/peers/gallery.py`.

use std::error::Error;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::Value;

/// The program that times the peers.
pub(crate) struct Peers {
    child: Child,
    requests: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Peers {
    /// Starts a script, which is named by its path in the folder `benches` of the project.
    pub(crate) fn start(script: &str) -> Result<Peers, Box<dyn Error>> {
        // In a bundle that is the folder of the executable; else the package is that folder, or lies in it.
        let executable = std::env::current_exe()?;
        let package = Path::new(env!("CARGO_MANIFEST_DIR"));
        let folders = [executable.parent(), Some(package), package.parent()];
        let found = folders.into_iter().flatten().map(|folder| folder.join(script)).find(|path| path.exists());
        let script = found.ok_or_else(|| format!("there is no `{script}` beside the program"))?;
        let mut child = Command::new("python3").arg(script).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let requests = child.stdin.take().ok_or("the peers' input is closed")?;
        let answers = BufReader::new(child.stdout.take().ok_or("the peers' output is closed")?);
        Ok(Peers { child, requests, answers })
    }

    /// Sends one request and waits for its answer.
    ///
    /// # Errors
    /// The error that the peers answered, or one of the pipe.
    pub(crate) fn ask(&mut self, request: &str) -> Result<Value, Box<dyn Error>> {
        writeln!(self.requests, "{request}")?;
        let mut line = String::new();
        self.answers.read_line(&mut line)?;
        let answer: Value = serde_json::from_str(&line).map_err(|_| format!("the peers answered `{}` to `{request}`", line.trim()))?;
        answer["error"].as_str().map_or(Ok(answer.clone()), |error| Err(error.into()))
    }
}

impl Drop for Peers {
    fn drop(&mut self) {
        let _ = writeln!(self.requests, "quit");
        let _ = self.child.wait();
    }
}
