//! The configurations of a launch as JSON.
//!
//! ```json
//! { "key": ["0x0"], "words": [{ "word": 6, "bucket": 0 }], "warmup": 5, "rep": 100,
//!   "configs": [{ "text": "Config { BLOCK_SIZE: 4, num_warps: 8, num_stages: 3 }", "key": ["0x4"],
//!     "schedule": { "num_warps": 8, "num_ctas": 1, "num_stages": 3, "maxnreg": null }, "grid": ["cdiv(n, 4)", "1", "1"] }] }
//! ```
//!
//! `words` are those of the tuning key; a bucket of 0 is a power of two. The fields `zeroed`, `restored`, `prunes`, `pruned`, `top_k`, `cost`, `verify` and
//! `records` are left out where they say nothing.

use kernel_runtime::Dim;
use kernel_runtime::ops::parts::{KeyPartParts, TunerParts};
use kernel_runtime::ops::recorder::{RecordedConfig, RecordedLaunch, RecordedTuning};
use serde_json::{Value as Json, json};

use crate::error::PackageError;
use crate::json::{fail, hex, list, read_key, text, unhex, write_key};
use crate::manifest::{read_schedule, write_schedule};

type Result<T, E = PackageError> = std::result::Result<T, E>;

/// The configurations as JSON. The writer of a package has refused those without parts.
pub(crate) fn write(tuning: &RecordedTuning) -> Json {
    let Ok(parts) = tuning.parts() else { return Json::Null };
    let word = |KeyPartParts { word, bucket }: &KeyPartParts| match bucket {
        Some(bucket) => json!({ "word": word, "bucket": bucket }),
        None => json!({ "word": word }),
    };
    let config = |config: &RecordedConfig| {
        let RecordedConfig { text, key, schedule, grid, is_pruned, cost } = config;
        let grid = grid.each_ref().map(Dim::to_string);
        let mut json = json!({ "text": text, "key": write_key(key), "schedule": write_schedule(*schedule), "grid": grid });
        if *is_pruned {
            json["pruned"] = true.into();
        }
        if parts.top_k.is_some() {
            json["cost"] = hex(cost.to_bits()).into();
        }
        json
    };
    let mut json = json!({
        "key": write_key(tuning.key()),
        "words": parts.key.iter().map(word).collect::<Vec<_>>(),
        "warmup": parts.warmup_ms,
        "rep": parts.rep_ms,
        "configs": tuning.configs().iter().map(config).collect::<Vec<_>>(),
    });
    for (name, numbers) in [("zeroed", &parts.zeroed), ("restored", &parts.restored)] {
        if !numbers.is_empty() {
            json[name] = numbers.clone().into();
        }
    }
    if parts.prunes {
        json["prunes"] = true.into();
    }
    if let Some(count) = parts.top_k {
        json["top_k"] = count.into();
    }
    if parts.verifies {
        json["verify"] = json!({ "rtol": parts.rtol.map(hex) });
    }
    if !parts.records.is_empty() {
        json["records"] = parts.records.iter().map(|(name, text)| json!([name, text])).collect();
    }
    json
}

/// The launch with the configurations of JSON. `grid` reads a grid.
pub(crate) fn read(json: &Json, launch: RecordedLaunch, grid: &dyn Fn(&Json) -> Result<[Dim; 3]>) -> Result<RecordedLaunch> {
    let number = |json: &Json, name: &str| json.as_u64().ok_or_else(|| fail(&format!("`{name}` is no number")));
    let size = |json: &Json, name: &str| usize::try_from(number(json, name)?).map_err(|_| fail(&format!("`{name}` is too large")));
    let milliseconds = |name: &str| u32::try_from(number(&json[name], name)?).map_err(|_| fail(&format!("`{name}` is too large")));
    let bits = |json: &Json, name: &str| json.as_str().and_then(unhex).ok_or_else(|| fail(&format!("`{name}` is no hexadecimal word")));
    let given = |json: &'_ Json| !json.is_null();
    let word = |entry: &Json| {
        let bucket = if given(&entry["bucket"]) { Some(number(&entry["bucket"], "bucket")?) } else { None };
        Ok(KeyPartParts { word: size(&entry["word"], "word")?, bucket })
    };
    let sizes = |name: &str| match &json[name] {
        Json::Null => Ok(Vec::new()),
        numbers => list(numbers, name)?.iter().map(|entry| size(entry, name)).collect::<Result<Vec<_>>>(),
    };
    let record = |entry: &Json| Ok((text(&entry[0], "records")?.to_owned(), text(&entry[1], "records")?.to_owned()));
    let records =
        if given(&json["records"]) { list(&json["records"], "records")?.iter().map(record).collect::<Result<_>>()? } else { Vec::new() };
    let rtol = &json["verify"]["rtol"];
    let parts = TunerParts {
        key: list(&json["words"], "words")?.iter().map(word).collect::<Result<_>>()?,
        zeroed: sizes("zeroed")?,
        restored: sizes("restored")?,
        warmup_ms: milliseconds("warmup")?,
        rep_ms: milliseconds("rep")?,
        prunes: json["prunes"].as_bool().unwrap_or_default(),
        top_k: if given(&json["top_k"]) { Some(size(&json["top_k"], "top_k")?) } else { None },
        verifies: given(&json["verify"]),
        rtol: if given(rtol) { Some(bits(rtol, "rtol")?) } else { None },
        records,
    };
    let config = |entry: &Json| {
        Ok(RecordedConfig {
            text: text(&entry["text"], "text")?.to_owned(),
            key: read_key(&entry["key"])?,
            schedule: read_schedule(&entry["schedule"])?,
            grid: grid(&entry["grid"])?,
            is_pruned: entry["pruned"].as_bool().unwrap_or_default(),
            cost: if given(&entry["cost"]) { f64::from_bits(bits(&entry["cost"], "cost")?) } else { 0.0 },
        })
    };
    let configs = list(&json["configs"], "configs")?.iter().map(config).collect::<Result<Vec<_>>>()?;
    Ok(launch.tuned(read_key(&json["key"])?, configs, parts)?)
}
