//! The kernels of a manifest as JSON: parameters, facts and variants, with the names of the entries that hold their IR and code.

use std::collections::HashSet;

use kernel_runtime::ops::parts::{BuiltParts, FactParts, KernelParts, KnownParts, MachineCodeParts, ParamKind, Schedule, VariantParts};
use serde_json::{Value as Json, json};

use crate::error::PackageError;
use crate::json::{fail, hex, list, text, unhex};
use crate::package::Package;

type Result<T, E = PackageError> = std::result::Result<T, E>;

pub(crate) fn write_kernel(number: usize, parts: &KernelParts, entries: &mut Vec<(String, Vec<u8>)>) -> Json {
    let file = format!("kernels/{number}-{}", parts.name);
    let ir = format!("{file}.ir");
    entries.push((ir.clone(), parts.ir.clone().into_bytes()));
    let params: Vec<Json> = parts.params.iter().map(|(name, kind)| json!([name, kind_name(*kind)])).collect();
    let facts: Vec<Json> = parts
        .facts
        .iter()
        .map(|FactParts { param, known }| match known {
            KnownParts::Is(bits) => json!({ "param": param, "is": hex(*bits) }),
            KnownParts::MultipleOf(of) => json!({ "param": param, "multiple_of": hex(*of) }),
        })
        .collect();
    let mut variants = Vec::new();
    for (number, variant) in parts.variants.iter().enumerate() {
        let ptx = format!("{file}-{number}.ptx");
        entries.push((ptx.clone(), variant.ptx.clone().into_bytes()));
        let key: Vec<String> = variant.key.iter().map(|word| hex(*word)).collect();
        let mut json = json!({
            "key": key, "schedule": write_schedule(variant.schedule), "target": variant.target, "entry": variant.entry,
            "shared_bytes": variant.shared_bytes, "ptx": ptx,
        });
        if !variant.machine_code.is_empty() {
            let code = |MachineCodeParts { architecture, bytes }: &MachineCodeParts| {
                let name = format!("{file}-{number}.{architecture}.cubin");
                entries.push((name.clone(), bytes.to_vec()));
                json!({ "architecture": architecture, "code": name })
            };
            json["machine_code"] = variant.machine_code.iter().map(code).collect();
        }
        variants.push(json);
    }
    let mut json = json!({ "name": parts.name, "ir": ir, "schedule": write_schedule(parts.schedule), "params": params, "facts": facts, "variants": variants });
    if let Some(BuiltParts { count, contents, records }) = &parts.built {
        json["built"] = json!({ "variants": count, "contents": contents });
        if !records.is_empty() {
            let name = format!("{file}.tuning.json");
            entries.push((name.clone(), records.clone().into_bytes()));
            json["built"]["records"] = name.into();
        }
    }
    json
}

fn kind_name(kind: ParamKind) -> String {
    match kind {
        ParamKind::Pointer => "pointer".to_owned(),
        ParamKind::PointerMut => "pointer_mut".to_owned(),
        ParamKind::View(rank) => format!("view{rank}"),
        ParamKind::ViewMut(rank) => format!("view_mut{rank}"),
        ParamKind::Scalar => "scalar".to_owned(),
    }
}

/// The most axes of a view.
const MOST_AXES: usize = 16;

fn kind_of(name: &str) -> Option<ParamKind> {
    let rank = |digits: &str| digits.parse().ok().filter(|rank| (1..=MOST_AXES).contains(rank));
    match name {
        "pointer" => Some(ParamKind::Pointer),
        "pointer_mut" => Some(ParamKind::PointerMut),
        "scalar" => Some(ParamKind::Scalar),
        _ => match name.strip_prefix("view_mut") {
            Some(digits) => rank(digits).map(ParamKind::ViewMut),
            None => rank(name.strip_prefix("view")?).map(ParamKind::View),
        },
    }
}

pub(crate) fn write_schedule(schedule: Schedule) -> Json {
    let Schedule { num_warps, num_ctas, num_stages, maxnreg } = schedule;
    json!({ "num_warps": num_warps, "num_ctas": num_ctas, "num_stages": num_stages, "maxnreg": maxnreg })
}

pub(crate) fn read_schedule(json: &Json) -> Result<Schedule> {
    let number =
        |name: &str| json[name].as_u64().and_then(|number| u32::try_from(number).ok()).ok_or_else(|| fail("a schedule is damaged"));
    let maxnreg = if json["maxnreg"].is_null() { None } else { Some(number("maxnreg")?) };
    Ok(Schedule { num_warps: number("num_warps")?, num_ctas: number("num_ctas")?, num_stages: number("num_stages")?, maxnreg })
}

impl Package {
    /// The kernels, in the order of the manifest. They are not compared with their IR; [`Package::plan`] does so.
    ///
    /// # Errors
    /// [`PackageError::Malformed`] for a manifest that cannot be read.
    pub fn kernels(&self) -> Result<Vec<KernelParts>> {
        let mut named = HashSet::new();
        list(&self.manifest()["kernels"], "kernels")?.iter().map(|kernel| self.kernel(kernel, &mut named)).collect()
    }

    /// A kernel of the manifest. `named` are the entries of other kernels: a second copy of them would take memory that the file does not account for.
    pub(crate) fn kernel<'p>(&'p self, json: &'p Json, named: &mut HashSet<&'p str>) -> Result<KernelParts> {
        let mut entry = |name: &'p Json, field: &str| {
            let name = text(name, field)?;
            if named.insert(name) { Ok(name) } else { Err(fail(&format!("two kernels or variants name entry `{name}`"))) }
        };
        let param = |param: &Json| {
            let name = text(&param[0], "params")?.to_owned();
            let kind = kind_of(text(&param[1], "params")?).ok_or_else(|| fail(&format!("parameter `{name}` has no kind")))?;
            Ok((name, kind))
        };
        let fact = |fact: &Json| {
            let param = text(&fact["param"], "param")?.to_owned();
            let known = |name: &str| fact[name].as_str().and_then(unhex);
            let known = known("is").map(KnownParts::Is).or_else(|| known("multiple_of").map(KnownParts::MultipleOf));
            Ok(FactParts { param, known: known.ok_or_else(|| fail("a fact is damaged"))? })
        };
        let ir = self.text(entry(&json["ir"], "ir")?)?;
        // The rest of an untrusted package is ignored.
        let is_trusted = self.limits.is_none();
        let content = |content: &Json| Ok((text(&content[0], "contents")?.to_owned(), text(&content[1], "contents")?.to_owned()));
        let built = match &json["built"] {
            built if is_trusted && !built.is_null() => {
                let count = built["variants"].as_u64().and_then(|count| usize::try_from(count).ok());
                let contents = list(&built["contents"], "contents")?.iter().map(content).collect::<Result<_>>()?;
                let records = if built["records"].is_null() { String::new() } else { self.text(entry(&built["records"], "records")?)? };
                Some(BuiltParts { count: count.ok_or_else(|| fail("`built` is damaged"))?, contents, records })
            }
            _ => None,
        };
        let variant = |variant: &'p Json| {
            let key = list(&variant["key"], "key")?.iter().map(|word| word.as_str().and_then(unhex)).collect::<Option<Vec<u64>>>();
            let shared_bytes = variant["shared_bytes"].as_u64().and_then(|bytes| u32::try_from(bytes).ok());
            Ok(VariantParts {
                key: key.ok_or_else(|| fail("a key has hexadecimal words"))?,
                schedule: read_schedule(&variant["schedule"])?,
                target: text(&variant["target"], "target")?.to_owned(),
                entry: text(&variant["entry"], "entry")?.to_owned(),
                shared_bytes: shared_bytes.ok_or_else(|| fail("a variant is damaged"))?,
                ptx: self.text(entry(&variant["ptx"], "ptx")?)?,
                machine_code: match &variant["machine_code"] {
                    Json::Null => Vec::new(),
                    codes => list(codes, "machine_code")?
                        .iter()
                        .map(|code| {
                            let architecture = text(&code["architecture"], "architecture")?.to_owned();
                            Ok(MachineCodeParts { architecture, bytes: self.entry(entry(&code["code"], "code")?)?.into() })
                        })
                        .collect::<Result<_>>()?,
                },
            })
        };
        Ok(KernelParts {
            name: text(&json["name"], "name")?.to_owned(),
            ir,
            schedule: read_schedule(&json["schedule"])?,
            params: list(&json["params"], "params")?.iter().map(param).collect::<Result<_>>()?,
            facts: list(&json["facts"], "facts")?.iter().map(fact).collect::<Result<_>>()?,
            variants: if is_trusted {
                list(&json["variants"], "variants")?.iter().map(variant).collect::<Result<_>>()?
            } else {
                Vec::new()
            },
            built,
        })
    }
}
