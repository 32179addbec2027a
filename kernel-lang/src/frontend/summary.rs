//! A build summary as lines of JSON: one line for each variant and for each configuration that was left out. Tools display it.
//!
//! ```text
//! {"compile_us":2301,"crate":"sums","file":"src/add.rs","kernel":"add","maxnreg":null,"name":"add-11-512-w4-sm_80.ptx","num_ctas":1,"num_stages":3,
//!  "num_warps":4,"package":"sums","ptx":".version 7.0\n..","shared_bytes":0,"target":"sm_80","values":{"B":"512","T":"f32"}}
//! {"crate":"sums","file":"src/add.rs","kernel":"add",..,"pruned":"a tile of 4194304 elements ..","target":null,"values":{"B":"4194304","T":"f32"}}
//! ```
//!
//! Times differ from build to build, so no compilation result may depend on the summary.

use std::fmt::Write;

use serde_json::{Map, Value, json};

use crate::Schedule;
use crate::frontend::Expansion;

impl Expansion {
    /// The lines. The caller of the compiler supplies package and crate.
    pub fn summary(&self, package: &str, krate: &str) -> String {
        let of = |values: &[(String, String)], schedule: Schedule| {
            let values: Map<String, Value> = values.iter().map(|(name, value)| (name.clone(), value.as_str().into())).collect();
            let Schedule { num_warps, num_ctas, num_stages, maxnreg } = schedule;
            json!({
                "package": package, "crate": krate, "kernel": self.name, "file": self.file, "values": values,
                "num_warps": num_warps, "num_ctas": num_ctas, "num_stages": num_stages, "maxnreg": maxnreg,
            })
        };
        let mut text = String::new();
        for variant in &self.variants {
            let mut line = of(&variant.values, variant.schedule);
            line["target"] = variant.target.as_str().into();
            line["shared_bytes"] = variant.shared_bytes.into();
            line["compile_us"] = u64::try_from(variant.took.as_micros()).unwrap_or(u64::MAX).into();
            line["name"] = variant.file_name(&self.name).into();
            line["ptx"] = variant.ptx.as_str().into();
            let _ = writeln!(text, "{line}");
        }
        for pruned in &self.pruned {
            let mut line = of(&pruned.values, pruned.schedule);
            line["target"] = pruned.target.as_deref().into();
            line["pruned"] = pruned.note.as_str().into();
            let _ = writeln!(text, "{line}");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of three configurations, one is too large for any GPU, and one asks for more registers than there are.
    #[test]
    fn what_was_compiled_and_what_was_left_out_is_told() {
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
        let expansion = crate::frontend::autotune(attribute, item, &());
        assert!(!expansion.tokens.to_string().contains("compile_error"), "{}", expansion.tokens);
        let summary = expansion.summary("sums", "fills");
        let lines: Vec<Value> = summary.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let whose = json!(["sums", "fills", "fill"]);
        assert!(lines.iter().all(|line| json!([line["package"], line["crate"], line["kernel"]]) == whose), "{summary}");
        // The configuration, the target, and the reason if there is no PTX.
        let told = |line: &Value| {
            let what = if line["ptx"].is_string() { "PTX" } else { line["pruned"].as_str().unwrap_or_default() };
            format!("{} {} {} {} {}: {what}", line["values"], line["num_warps"], line["num_ctas"], line["maxnreg"], line["target"])
        };
        let mut told: Vec<String> = lines.iter().map(told).collect();
        told.sort();
        let expected = [
            r#"{"B":"2097152"} 4 1 null null: a tile of 2097152 elements is too large"#,
            r#"{"B":"512"} 32 1 128 null: 1024 threads of 128 registers take more than the 65536"#,
            r#"{"B":"512"} 4 1 null "sm_80": PTX"#,
            r#"{"B":"512"} 4 2 null "sm_80": sm_80 has no clusters of 2 CTAs"#,
            r#"{"B":"512"} 4 2 null "sm_90a": PTX"#,
        ];
        assert!(told.len() == expected.len() && told.iter().zip(expected).all(|(told, start)| told.starts_with(start)), "{told:#?}");
        assert!(lines.iter().all(|line| line["compile_us"].is_u64() == line["ptx"].is_string()), "{summary}");
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
        let expansion = crate::frontend::autotune(attribute, item, &());
        assert!(expansion.tokens.to_string().contains("a tile of 4194304 elements is too large") && expansion.pruned.is_empty());
    }
}
