//! Graphs in the language of Graphviz.

use galatea::prelude::*;
use galatea::{Dim, Dtype};
use kernel_graph::{Level, input};

use crate::kernels::{mlp_op, sum_difference};
use crate::numbers;
use crate::round_trip::export;

pub(crate) fn a_drawing_has_frames_for_calls_and_types_at_edges() {
    let n = Dim::new("n", 2..=8);
    let weight = numbers(&Device::cpu(), 8);
    let graph = export(
        |[x]| {
            let (total, silu) = mlp_op(x, std::slice::from_ref(&weight), None, true)?;
            Ok([sum_difference(&total, &silu)?.0, total.slice(Dim::from(1)..Dim::from(2))?])
        },
        [input("x", [&n], Dtype::F32)],
    );
    let graph = graph.unwrap().named("a \"drawn\" \\ graph\n");
    assert_eq!(
        graph.dot(Level::Ops),
        "\
digraph \"a \\\"drawn\\\" \\\\ graph\\n\" {
  node [shape = box, fontname = \"monospace\"];
  i0 [label = \"x\", shape = ellipse];
  c0 [label = \"c0\", shape = ellipse];
  n0 [label = \"test::mlp\", style = bold];
  n11 [label = \"alloc\"];
  n12 [label = \"alloc\"];
  n13 [label = \"sum_and_difference\\n[1, 1, 1]\"];
  n14 [label = \"view at 1\"];
  return [label = \"return\", shape = ellipse];
  i0 -> n0 [label = \"f32[n]\"];
  c0 -> n0 [label = \"f32[8]\"];
  n0 -> n13 [label = \"f32[n]\"];
  n0 -> n13 [label = \"f32[n]\"];
  n11 -> n13 [label = \"f32[n]\"];
  n12 -> n13 [label = \"f32[n]\"];
  n0 -> n14 [label = \"f32[n]\"];
  n13 -> return [label = \"f32[n]\"];
  n14 -> return [label = \"f32[1]\"];
}
"
    );
    assert_eq!(
        graph.dot(Level::Kernels),
        "\
digraph \"a \\\"drawn\\\" \\\\ graph\\n\" {
  node [shape = box, fontname = \"monospace\"];
  i0 [label = \"x\", shape = ellipse];
  c0 [label = \"c0\", shape = ellipse];
  subgraph cluster0 {
    label = \"test::mlp\";
    subgraph cluster1 {
      label = \"test::silu\";
      n0 [label = \"alloc\"];
      n1 [label = \"silu_elements<T = f32, BLOCK = 64>\\n[1, 1, 1]\"];
    }
    n2 [label = \"alloc\"];
    n3 [label = \"alloc\"];
    n4 [label = \"sum_and_difference\\n[1, 1, 1]\"];
    subgraph cluster2 {
      label = \"test::scale_\";
      n5 [label = \"scale_elements\\n[1, 1, 1]\"];
    }
    n6 [label = \"alloc\"];
    n7 [label = \"alloc\"];
    n8 [label = \"sum_and_difference\\n[1, 1, 1]\"];
    subgraph cluster3 {
      label = \"test::silu\";
      n9 [label = \"alloc\"];
      n10 [label = \"silu_elements<T = f32, BLOCK = 64>\\n[1, 1, 1]\"];
    }
  }
  n11 [label = \"alloc\"];
  n12 [label = \"alloc\"];
  n13 [label = \"sum_and_difference\\n[1, 1, 1]\"];
  n14 [label = \"view at 1\"];
  return [label = \"return\", shape = ellipse];
  i0 -> n1 [label = \"f32[n]\"];
  n0 -> n1 [label = \"f32[n]\"];
  n1 -> n4 [label = \"f32[n]\"];
  c0 -> n4 [label = \"f32[8]\"];
  n2 -> n4 [label = \"f32[n]\"];
  n3 -> n4 [label = \"f32[n]\"];
  n1 -> n5 [label = \"f32[n]\"];
  n4 -> n8 [label = \"f32[n]\"];
  n5 -> n8 [label = \"f32[n]\"];
  n6 -> n8 [label = \"f32[n]\"];
  n7 -> n8 [label = \"f32[n]\"];
  n4 -> n10 [label = \"f32[n]\"];
  n9 -> n10 [label = \"f32[n]\"];
  n8 -> n13 [label = \"f32[n]\"];
  n10 -> n13 [label = \"f32[n]\"];
  n11 -> n13 [label = \"f32[n]\"];
  n12 -> n13 [label = \"f32[n]\"];
  n8 -> n14 [label = \"f32[n]\"];
  n13 -> return [label = \"f32[n]\"];
  n14 -> return [label = \"f32[1]\"];
}
"
    );
    let twice = export(|[x]| Ok(sum_difference(x, x)?.0), [input("x", [&n], Dtype::F32)]).unwrap();
    assert_eq!(twice.dot(Level::Kernels).matches("i0 -> n2").count(), 1, "an edge is a value");
}
