//! The results as a table, with geometric means of the ratios.

use std::collections::BTreeMap;

use super::cases::Case;

/// The result of a product.
pub(crate) struct Row {
    pub(crate) case: Case,
    /// The extents as a text.
    pub(crate) shape: String,
    pub(crate) ours_us: f64,
    /// The times of the peers in microseconds, by their names.
    pub(crate) peers_us: BTreeMap<String, f64>,
    /// The clock of the multiprocessors under load, before the first round.
    pub(crate) sm_mhz: Option<f64>,
}

impl Row {
    fn cublas_us(&self) -> Option<f64> {
        self.peers_us.get("cublas").copied()
    }

    /// The fastest of Triton's versions.
    fn triton(&self) -> Option<(&str, f64)> {
        let versions = self.peers_us.iter().filter_map(|(peer, us)| Some((peer.strip_prefix("triton ")?, *us)));
        versions.min_by(|(_, one), (_, other)| one.total_cmp(other))
    }

    /// How many times as fast as cuBLAS, as Triton, and as the faster of them ours is.
    fn ratios(&self) -> [Option<f64>; 3] {
        let (cublas, triton) = (self.cublas_us(), self.triton().map(|(_, us)| us));
        let best = [cublas, triton].into_iter().flatten().reduce(f64::min);
        [cublas, triton, best].map(|us| us.map(|us| us / self.ours_us))
    }
}

/// A table in Markdown, and behind it a line with the geometric means of each class, and one of all rows if there are several classes.
pub(crate) fn table(rows: &[Row]) -> String {
    let mut text = String::from(
        "| product | type | layout | ours | cuBLAS | Triton | version | of cuBLAS | of Triton | SM MHz |\n|---|---|---|---:|---:|---:|---|---:|---:|---:|\n",
    );
    for row in rows {
        let Row { case, shape, ours_us, sm_mhz, .. } = row;
        let tflops = |us: Option<f64>| us.map_or("-".to_owned(), |us| format!("{:.1}", case.tflops(us)));
        let [of_cublas, of_triton, _] = row.ratios().map(ratio_text);
        let (version, triton_us) = row.triton().unzip();
        text += &format!(
            "| {shape} | {} | {} | {} | {} | {} | {} | {of_cublas} | {of_triton} | {} |\n",
            case.kind.name(),
            case.layout,
            tflops(Some(*ours_us)),
            tflops(row.cublas_us()),
            tflops(triton_us),
            version.unwrap_or("-"),
            sm_mhz.map_or("-".to_owned(), |mhz| format!("{mhz:.0}")),
        );
    }
    let mut classes: Vec<&str> = Vec::new();
    for row in rows {
        if !classes.contains(&row.case.class) {
            classes.push(row.case.class);
        }
    }
    let all = (classes.len() > 1).then_some("all");
    for class in classes.into_iter().chain(all) {
        let of_class: Vec<&Row> = rows.iter().filter(|row| all == Some(class) || row.case.class == class).collect();
        let means = [0, 1, 2].map(|at| ratio_text(geometric_mean(of_class.iter().filter_map(|row| row.ratios()[at]))));
        let [of_cublas, of_triton, of_best] = means;
        text += &format!(
            "\n{class} ({} products), geometric means: {of_cublas} of cuBLAS, {of_triton} of Triton, {of_best} of the faster of them",
            of_class.len()
        );
    }
    text + "\n"
}

fn ratio_text(ratio: Option<f64>) -> String {
    ratio.map_or("-".to_owned(), |ratio| format!("{ratio:.3}x"))
}

/// None of no numbers.
pub(crate) fn geometric_mean(numbers: impl Iterator<Item = f64>) -> Option<f64> {
    let logarithms: Vec<f64> = numbers.map(f64::ln).collect();
    (!logarithms.is_empty()).then(|| (logarithms.iter().sum::<f64>() / logarithms.len() as f64).exp())
}
