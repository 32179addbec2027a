//! A build summary as lines of JSON: one line for each variant and for each configuration that was left out. Tools display it.
//!
//! ```text
//! {"package":"sums","crate":"sums","kernel":"add","file":"src/add.rs","values":{"T":"f32","B":"512"},"num_warps":4,"num_ctas":1,"num_stages":3,
//!  "maxnreg":null,"target":"sm_80","shared_bytes":0,"compile_us":2301,"name":"add-11-512-w4-sm_80.ptx","ptx":".version 7.0\n.."}
//! {"package":"sums","crate":"sums","kernel":"add","file":"src/add.rs","values":{"T":"f32","B":"4194304"},"num_warps":4,..,"target":null,"pruned":"a tile of 4194304 elements .."}
//! ```
//!
//! Times differ from build to build, so no compilation result may depend on the summary.

use std::fmt::Write;

use crate::Expansion;
use kernel_lang::Schedule;

impl Expansion {
    /// The lines. The caller of the compiler supplies package and crate.
    pub fn summary(&self, package: &str, krate: &str) -> String {
        let owner = format!("{{\"package\":{},\"crate\":{}", quoted(package), quoted(krate));
        let mut text = String::new();
        for variant in &self.variants {
            self.head(&mut text, &owner, &variant.values, variant.schedule);
            let (name, took) = (variant.file_name(&self.name), variant.took.as_micros());
            let (target, name, ptx) = (quoted(&variant.target), quoted(&name), quoted(&variant.ptx));
            let shared_bytes = variant.shared_bytes;
            let _ = writeln!(text, r#""target":{target},"shared_bytes":{shared_bytes},"compile_us":{took},"name":{name},"ptx":{ptx}}}"#);
        }
        for pruned in &self.pruned {
            self.head(&mut text, &owner, &pruned.values, pruned.schedule);
            let target = pruned.target.as_deref().map_or_else(|| "null".to_owned(), quoted);
            let _ = writeln!(text, r#""target":{target},"pruned":{}}}"#, quoted(&pruned.note));
        }
        text
    }

    fn head(&self, text: &mut String, owner: &str, values: &[(String, String)], schedule: Schedule) {
        let values: Vec<String> = values.iter().map(|(name, value)| format!("{}:{}", quoted(name), quoted(value))).collect();
        let Schedule { num_warps, num_ctas, num_stages, maxnreg } = schedule;
        let maxnreg = maxnreg.map_or_else(|| "null".to_owned(), |registers| registers.to_string());
        let _ = write!(
            text,
            r#"{owner},"kernel":{},"file":{},"values":{{{}}},"num_warps":{num_warps},"num_ctas":{num_ctas},"num_stages":{num_stages},"maxnreg":{maxnreg},"#,
            quoted(&self.name),
            quoted(&self.file),
            values.join(",")
        );
    }
}

/// The text as a JSON string.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            '\n' => quoted.push_str("\\n"),
            c if c < ' ' => {
                let _ = write!(quoted, "\\u{:04x}", u32::from(c));
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_quoted() {
        assert_eq!(quoted("a \"b\" \\ c\n\td"), r#""a \"b\" \\ c\n\u0009d""#);
    }

    /// Of three configurations, one is too large for any GPU, and one asks for more registers than there are.
    #[test]
    fn compiled_and_skipped_variants_are_reported() {
        let attribute = quote::quote!(
            configs =
                [Config { B: 512 }, Config { B: 2097152 }, Config { B: 512, num_warps: 32, maxnreg: 128 }, Config { B: 512, num_ctas: 2 },]
        );
        let item = quote::quote! {
            #[kernel]
            fn fill<const B: usize>(y: PtrMut<f32>) {
                store(y + arange(0, B), 1.0);
            }
        };
        let expansion = crate::autotune(attribute, item, &());
        assert!(!expansion.tokens.to_string().contains("compile_error"), "{}", expansion.tokens);
        let summary = expansion.summary("sums", "fills");
        assert!(summary.lines().all(|line| line.starts_with("{\"package\":\"sums\",\"crate\":\"fills\",\"kernel\":\"fill\",")));
        let lines: Vec<&str> = summary.lines().collect();
        let find = |parts: &[&str]| lines.iter().filter(|line| parts.iter().all(|part| line.contains(part))).count();
        assert_eq!(
            find(&["\"kernel\":\"fill\"", "\"values\":{\"B\":\"512\"}", "\"num_ctas\":1", "\"target\":\"sm_80\"", "\"ptx\":\"//"]),
            1,
            "{summary}"
        );
        assert_eq!(
            find(&["\"values\":{\"B\":\"2097152\"}", "\"target\":null", "\"pruned\":\"a tile of 2097152 elements is too large"]),
            1,
            "{summary}"
        );
        assert_eq!(
            find(&["\"maxnreg\":128", "\"target\":null", "\"pruned\":\"1024 threads of 128 registers take more than the 65536"]),
            1,
            "{summary}"
        );
        assert_eq!(find(&["\"num_ctas\":2", "\"target\":\"sm_80\",\"pruned\":\"sm_80 has no clusters of 2 CTAs\""]), 1, "{summary}");
        assert_eq!(find(&["\"num_ctas\":2", "\"target\":\"sm_90a\"", "\"ptx\""]), 1, "{summary}");
        assert_eq!(lines.len(), 5, "{summary}");
    }

    #[test]
    fn where_all_configurations_are_too_large_that_is_a_mistake() {
        let attribute = quote::quote!(configs = [Config { B: 4194304 }, Config { B: 2097152 }]);
        let item = quote::quote! {
            #[kernel]
            fn fill<const B: usize>(y: PtrMut<f32>) {
                store(y + arange(0, B), 1.0);
            }
        };
        let expansion = crate::autotune(attribute, item, &());
        assert!(expansion.tokens.to_string().contains("a tile of 4194304 elements is too large") && expansion.pruned.is_empty());
    }
}
