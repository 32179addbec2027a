//! Recording with a test: the texts of each recorded graph are read as they are written.

use galatea::ops::{OpResults, Tensor};
use kernel_graph::{Environment, Graph, Input, Level, Listing, Result};

/// [`kernel_graph::export`], and the test of the graph's texts.
pub(crate) fn export<const N: usize, R: OpResults>(
    body: impl FnMut([&Tensor; N]) -> galatea::Result<R>,
    inputs: [Input; N],
) -> Result<Graph> {
    let graph = kernel_graph::export(body, inputs)?;
    parsed(&graph);
    Ok(graph)
}

/// The graph of the text of a graph, whose texts, tables and drawings are the same.
pub(crate) fn parsed(graph: &Graph) -> Graph {
    for level in [Level::Ops, Level::Kernels] {
        let text = graph.text(level);
        let listing = Listing::parse(&text).unwrap_or_else(|error| panic!("{error}\nin\n{text}"));
        assert_eq!(listing.to_string(), text, "a listing is printed as it was read");
    }
    let text = graph.to_string();
    let parsed = Graph::parse(&text, &Environment::from(graph)).unwrap_or_else(|error| panic!("{error}\nin\n{text}"));
    for level in [Level::Ops, Level::Kernels] {
        assert_eq!(parsed.text(level), graph.text(level));
        assert_eq!(parsed.tabular(level), graph.tabular(level));
        assert_eq!(parsed.dot(level), graph.dot(level));
    }
    // A text of ops gets the operations of its calls from the graph.
    let of_ops = Graph::parse(&graph.text(Level::Ops), &Environment::from(graph)).unwrap_or_else(|error| panic!("{error}\nin\n{text}"));
    assert_eq!(of_ops.text(Level::Ops), graph.text(Level::Ops));
    assert_eq!(without_cpu(of_ops.to_string()), without_cpu(text));
    let flops = |graph: &Graph| graph.flops().map(|table| table.to_string()).ok();
    assert_eq!(flops(&parsed), flops(graph));
    parsed
}

/// The text up to the program for the CPU, which a text of ops lacks.
fn without_cpu(text: String) -> String {
    let end = ["\non cpu\n", "\nnot on cpu: "].iter().find_map(|section| text.find(section));
    text[..end.unwrap_or(text.len() - 1)].to_owned()
}
