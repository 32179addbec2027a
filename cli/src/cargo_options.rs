//! The options that `cargo galatea` has in common with `cargo check`: they are passed on to cargo as they are, and tell which crates the
//! report is about.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::{ArgAction, Args, ValueEnum};
use glob::Pattern;
use serde::Deserialize;

use crate::command_line::When;

/// The options. Their names, help and order are those of cargo.
#[derive(Args)]
pub(crate) struct CargoOptions {
    /// Select the format of diagnostics
    #[arg(long, value_name = "FMT")]
    message_format: Option<MessageFormat>,
    /// Use verbose output (-vv very verbose/build.rs output)
    #[arg(short, long, action = ArgAction::Count)]
    verbose: u8,
    /// Do not print cargo log messages
    #[arg(short, long)]
    quiet: bool,
    /// Coloring
    #[arg(long, value_name = "WHEN")]
    color: Option<When>,
    /// Override a configuration value
    #[arg(long, value_name = "KEY=VALUE|PATH")]
    config: Vec<OsString>,

    /// Report only on this package; may be a pattern
    #[arg(short, long, value_name = "SPEC", help_heading = "Package Selection")]
    package: Vec<String>,
    /// Report on all packages in the workspace
    #[arg(long, help_heading = "Package Selection")]
    workspace: bool,
    /// Exclude packages from the report
    #[arg(long, value_name = "SPEC", help_heading = "Package Selection")]
    exclude: Vec<String>,

    /// Report only on this package's library
    #[arg(long, help_heading = "Target Selection")]
    lib: bool,
    /// Report on all binaries
    #[arg(long, help_heading = "Target Selection")]
    bins: bool,
    /// Report only on the specified binary
    #[arg(long, value_name = "NAME", help_heading = "Target Selection")]
    bin: Vec<String>,
    /// Report on all examples
    #[arg(long, help_heading = "Target Selection")]
    examples: bool,
    /// Report only on the specified example
    #[arg(long, value_name = "NAME", help_heading = "Target Selection")]
    example: Vec<String>,
    /// Report on all targets that have `test = true` set
    #[arg(long, help_heading = "Target Selection")]
    tests: bool,
    /// Report only on the specified test target
    #[arg(long, value_name = "NAME", help_heading = "Target Selection")]
    test: Vec<String>,
    /// Report on all targets that have `bench = true` set
    #[arg(long, help_heading = "Target Selection")]
    benches: bool,
    /// Report only on the specified bench target
    #[arg(long, value_name = "NAME", help_heading = "Target Selection")]
    bench: Vec<String>,
    /// Report on all targets
    #[arg(long, help_heading = "Target Selection")]
    all_targets: bool,

    /// Space or comma separated list of features to activate
    #[arg(short = 'F', long, value_name = "FEATURES", help_heading = "Feature Selection")]
    features: Vec<String>,
    /// Activate all available features
    #[arg(long, help_heading = "Feature Selection")]
    all_features: bool,
    /// Do not activate the `default` feature
    #[arg(long, help_heading = "Feature Selection")]
    no_default_features: bool,

    /// Number of parallel jobs, defaults to # of CPUs
    #[arg(short, long, value_name = "N", allow_hyphen_values = true, help_heading = "Compilation Options")]
    jobs: Option<String>,
    /// Do not abort the build as soon as there is an error
    #[arg(long, help_heading = "Compilation Options")]
    keep_going: bool,
    /// Check artifacts in release mode, with optimizations
    #[arg(short, long, help_heading = "Compilation Options")]
    release: bool,
    /// Check artifacts with the specified profile
    #[arg(long, value_name = "PROFILE-NAME", help_heading = "Compilation Options")]
    profile: Option<String>,
    /// Check for the target triple
    #[arg(long, value_name = "TRIPLE", help_heading = "Compilation Options")]
    target: Vec<String>,
    /// Directory for all generated artifacts
    #[arg(long, value_name = "DIRECTORY", help_heading = "Compilation Options")]
    target_dir: Option<PathBuf>,

    /// Path to Cargo.toml
    #[arg(long, value_name = "PATH", help_heading = "Manifest Options")]
    manifest_path: Option<PathBuf>,
    /// Ignore `rust-version` specification in packages
    #[arg(long, help_heading = "Manifest Options")]
    ignore_rust_version: bool,
    /// Assert that `Cargo.lock` will remain unchanged
    #[arg(long, help_heading = "Manifest Options")]
    locked: bool,
    /// Run without accessing the network
    #[arg(long, help_heading = "Manifest Options")]
    offline: bool,
    /// Equivalent to specifying both --locked and --offline
    #[arg(long, help_heading = "Manifest Options")]
    frozen: bool,
}

/// The formats that cargo writes to standard error. Those in JSON go to standard output, where the report is.
#[derive(Clone, Copy, ValueEnum)]
enum MessageFormat {
    Human,
    Short,
}

/// The fields of the output of `cargo metadata` that this command uses.
#[derive(Deserialize)]
struct Metadata {
    target_directory: PathBuf,
    packages: Vec<Package>,
    workspace_members: Vec<String>,
    /// The packages that cargo selects in this folder without options.
    workspace_default_members: Vec<String>,
}

#[derive(Deserialize)]
struct Package {
    id: String,
    name: String,
    targets: Vec<Target>,
}

#[derive(Deserialize)]
struct Target {
    name: String,
    kind: Vec<String>,
    test: bool,
}

/// The crates that the options select, and the target directory.
pub(crate) struct Selection {
    pub(crate) target_directory: PathBuf,
    /// Names of packages and of their crates.
    crates: Vec<(String, String)>,
    /// Packages that are no members of the workspace, of which every crate is selected.
    dependencies: Vec<String>,
}

impl Selection {
    /// Returns whether the crate is selected, rather than compiled because a selected one needs it.
    pub(crate) fn has(&self, package: &str, krate: &str) -> bool {
        self.dependencies.iter().any(|name| name == package) || self.crates.iter().any(|(of, name)| of == package && name == krate)
    }
}

impl CargoOptions {
    /// The command `cargo check` with these options and this target directory.
    pub(crate) fn check(&self, target_directory: &Path) -> Command {
        let mut check = self.cargo("check");
        let flags = [
            ("--quiet", self.quiet),
            ("--workspace", self.workspace),
            ("--lib", self.lib),
            ("--bins", self.bins),
            ("--examples", self.examples),
            ("--tests", self.tests),
            ("--benches", self.benches),
            ("--all-targets", self.all_targets),
            ("--all-features", self.all_features),
            ("--no-default-features", self.no_default_features),
            ("--keep-going", self.keep_going),
            ("--release", self.release),
            ("--ignore-rust-version", self.ignore_rust_version),
        ];
        check.args(flags.iter().filter(|(_, is_on)| *is_on).map(|(flag, _)| flag));
        check.args((0..self.verbose).map(|_| "--verbose"));
        let lists = [
            ("--package", &self.package),
            ("--exclude", &self.exclude),
            ("--bin", &self.bin),
            ("--example", &self.example),
            ("--test", &self.test),
            ("--bench", &self.bench),
            ("--features", &self.features),
            ("--target", &self.target),
        ];
        // One argument with `=`, because a value may begin with a hyphen.
        for (option, values) in lists {
            check.args(values.iter().map(|value| format!("{option}={value}")));
        }
        for (option, value) in [("--jobs", &self.jobs), ("--profile", &self.profile)] {
            check.args(value.iter().map(|value| format!("{option}={value}")));
        }
        check.args(self.message_format.map(|format| format!("--message-format={}", name(format))));
        check.arg("--target-dir").arg(target_directory);
        check
    }

    /// Asks cargo for the workspace, and selects the crates that [`CargoOptions::check`] builds for their own sake.
    pub(crate) fn selection(&self) -> Result<Selection, String> {
        let output = self.cargo("metadata").args(["--no-deps", "--format-version", "1"]).output();
        let output = output.map_err(|error| format!("cannot run cargo: {error}"))?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).trim().trim_start_matches("error: ").to_owned());
        }
        let metadata: Metadata =
            serde_json::from_slice(&output.stdout).map_err(|error| format!("`cargo metadata` cannot be read: {error}"))?;
        self.select(metadata)
    }

    fn select(&self, metadata: Metadata) -> Result<Selection, String> {
        let Metadata { target_directory, packages, workspace_members, workspace_default_members } = metadata;
        let (wanted, excluded) = (patterns(&self.package)?, patterns(&self.exclude)?);
        let is_selected = |package: &Package| match wanted.as_slice() {
            [] if self.workspace => {
                workspace_members.contains(&package.id) && !excluded.iter().any(|pattern| pattern.matches(&package.name))
            }
            [] => workspace_default_members.contains(&package.id),
            wanted => self.workspace || wanted.iter().any(|pattern| pattern.matches(&package.name)),
        };
        let names = Names::of(self)?;
        let mut crates = Vec::new();
        for package in packages.iter().filter(|package| is_selected(package)) {
            let targets = package.targets.iter().filter(|target| self.selects(target, &names));
            crates.extend(targets.map(|target| (package.name.clone(), target.name.replace('-', "_"))));
        }
        let is_member = |pattern: &Pattern| packages.iter().any(|package| pattern.matches(&package.name));
        let dependencies = wanted.iter().filter(|pattern| !is_member(pattern)).map(|pattern| pattern.as_str().to_owned()).collect();
        // Cargo names the folder of `--target-dir` relative to the current one, as this process does.
        Ok(Selection { target_directory: self.target_dir.clone().unwrap_or(target_directory), crates, dependencies })
    }

    fn selects(&self, target: &Target, names: &Names) -> bool {
        let is = |kind: &str| target.kind.iter().any(|own| own == kind);
        let named = |patterns: &[Pattern]| patterns.iter().any(|pattern| pattern.matches(&target.name));
        if is("custom-build") {
            return false;
        }
        let is_lib = !["bin", "example", "test", "bench"].into_iter().any(is);
        let is_any_asked = self.lib || self.bins || self.examples || self.tests || self.benches || !names.is_empty();
        if self.all_targets || !is_any_asked {
            return self.all_targets || is_lib || is("bin");
        }
        // `cargo metadata` does not tell `bench = false`, and only libraries and binaries could have it, which hold the same kernels anyway.
        (is_lib && (self.lib || self.benches))
            || (is("bin") && (self.bins || self.benches || named(&names.bin)))
            || (is("example") && (self.examples || named(&names.example)))
            || (is("test") && named(&names.test))
            || (is("bench") && (self.benches || named(&names.bench)))
            || (target.test && self.tests)
    }

    /// Cargo with the options that any of its commands has.
    fn cargo(&self, command: &str) -> Command {
        let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        cargo.arg(command);
        if let Some(path) = &self.manifest_path {
            cargo.arg("--manifest-path").arg(path);
        }
        for value in &self.config {
            cargo.arg("--config").arg(value);
        }
        let flags = [("--locked", self.locked), ("--offline", self.offline), ("--frozen", self.frozen)];
        cargo.args(flags.iter().filter(|(_, is_on)| *is_on).map(|(flag, _)| flag));
        cargo.args(self.color.map(|when| format!("--color={}", name(when))));
        cargo
    }
}

/// The targets that are named one by one.
struct Names {
    bin: Vec<Pattern>,
    example: Vec<Pattern>,
    test: Vec<Pattern>,
    bench: Vec<Pattern>,
}

impl Names {
    fn of(options: &CargoOptions) -> Result<Names, String> {
        let CargoOptions { bin, example, test, bench, .. } = options;
        Ok(Names { bin: patterns(bin)?, example: patterns(example)?, test: patterns(test)?, bench: patterns(bench)? })
    }

    fn is_empty(&self) -> bool {
        [&self.bin, &self.example, &self.test, &self.bench].iter().all(|names| names.is_empty())
    }
}

/// The value of an option, as its user writes it.
fn name(value: impl ValueEnum) -> String {
    value.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}

/// Names of packages and targets are patterns in cargo: `kernel-*`.
fn patterns(names: &[String]) -> Result<Vec<Pattern>, String> {
    let pattern = |name: &String| Pattern::new(package_name(name)).map_err(|error| format!("`{name}` is no pattern: {error}"));
    names.iter().map(pattern).collect()
}

/// The name in a package ID specification, such as `name`, `name@1.0`, `https://example.org/name#1.0` or `path+file:///folder#name@1.0`.
fn package_name(spec: &str) -> &str {
    let (url, fragment) = spec.split_once('#').map_or((spec, None), |(url, fragment)| (url, Some(fragment)));
    let last = url.trim_end_matches('/').rsplit('/').next().unwrap_or(url);
    let named = fragment.filter(|fragment| !fragment.starts_with(|c: char| c.is_ascii_digit())).unwrap_or(last);
    // A pattern may have a `?`, but then no URL is around it.
    let ends: &[char] = if url.contains("://") { &['@', ':', '?'] } else { &['@', ':'] };
    named.split(ends).next().unwrap_or(named)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        options: CargoOptions,
    }

    fn options(line: &str) -> CargoOptions {
        Line::try_parse_from(["cargo"].into_iter().chain(line.split_whitespace())).unwrap_or_else(|error| panic!("{error}")).options
    }

    fn passed_on(line: &str) -> Vec<String> {
        let check = options(line).check(Path::new("t"));
        check.get_args().map(|argument| argument.to_string_lossy().into_owned()).collect()
    }

    /// Each option is passed on, and none is lost that is added here but not there.
    #[test]
    fn every_option_reaches_cargo() {
        use clap::CommandFactory;
        for argument in Line::command().get_arguments() {
            let Some(long) = argument.get_long() else { continue };
            let value = match long {
                "message-format" => "=short",
                "color" => "=never",
                "target-dir" => continue,
                _ if argument.get_action().takes_values() => "=x",
                _ => "",
            };
            let given = format!("--{long}{value}");
            let passed = passed_on(&given);
            let in_two = passed.windows(2).any(|pair| pair[0] == format!("--{long}") && format!("={}", pair[1]) == value);
            assert!(passed.contains(&given) || in_two, "{given}: {passed:?}");
        }
        assert_eq!(passed_on("-vv -j -1"), ["check", "--verbose", "--verbose", "--jobs=-1", "--target-dir", "t"]);
        let repeated = "-p a --package b -F x,y --features z --target one --target two --test c --test d";
        let expected =
            "check --package=a --package=b --test=c --test=d --features=x,y --features=z --target=one --target=two --target-dir t";
        assert_eq!(passed_on(repeated).join(" "), expected);
    }

    #[test]
    fn the_crates_are_those_that_cargo_builds_for_these_options() {
        let selected = |line: &str| {
            let target = |name: &str, kind: &str, test| Target { name: name.to_owned(), kind: vec![kind.to_owned()], test };
            let targets = || {
                vec![
                    target("the-lib", "lib", true),
                    target("tool", "bin", true),
                    target("show", "example", false),
                    target("shape", "example", false),
                    target("check", "test", true),
                    target("speed", "bench", false),
                    target("build-script-build", "custom-build", false),
                ]
            };
            let package = |name: &str| Package { id: format!("{name} 1.0"), name: name.to_owned(), targets: targets() };
            let metadata = Metadata {
                target_directory: "target".into(),
                packages: vec![package("a"), package("ab")],
                workspace_members: vec!["a 1.0".to_owned(), "ab 1.0".to_owned()],
                workspace_default_members: vec!["a 1.0".to_owned()],
            };
            let Selection { crates, dependencies, .. } = options(line).select(metadata).unwrap();
            let all = crates.iter().map(|(package, name)| format!("{package}:{name}")).chain(dependencies);
            all.collect::<Vec<_>>().join(" ")
        };
        let of_a = "a:the_lib a:tool";
        assert_eq!(selected(""), of_a);
        assert_eq!(selected("-p ab@1.0"), "ab:the_lib ab:tool");
        assert_eq!(selected("-p a*"), format!("{of_a} ab:the_lib ab:tool"));
        assert_eq!(selected("--workspace --exclude ab"), of_a);
        assert_eq!(selected("-p a -p serde"), format!("{of_a} serde"));
        assert_eq!(selected("--lib"), "a:the_lib");
        assert_eq!(selected("--bins --example sh*"), "a:tool a:show a:shape");
        assert_eq!(selected("--example show --bench speed"), "a:show a:speed");
        assert_eq!(selected("--tests"), "a:the_lib a:tool a:check");
        assert_eq!(selected("--test other"), "");
        assert_eq!(selected("--benches"), "a:the_lib a:tool a:speed");
        assert_eq!(selected("--all-targets"), "a:the_lib a:tool a:show a:shape a:check a:speed");
    }

    #[test]
    fn specifications_name_packages() {
        for spec in ["name", "name@1.0", "name:1.0", "https://example.org/name#1.0", "path+file:///folder#name@1.0", "file:///a/name/"] {
            assert_eq!(package_name(spec), "name", "{spec}");
        }
        assert_eq!(package_name("na?e*"), "na?e*");
        assert_eq!(package_name("https://example.org/name?branch=next#1.0"), "name");
    }
}
