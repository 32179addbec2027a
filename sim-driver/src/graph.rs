//! CUDA graphs: nodes, edges, instances and their launches.

use cudarc::driver::sys::{
    CUDA_KERNEL_NODE_PARAMS, CUDA_MEMCPY3D, CUDA_MEMSET_NODE_PARAMS, CUcontext, CUgraph, CUgraphEdgeData, CUgraphExec, CUgraphNode,
    CUresult, CUstream,
};

use crate::call::{answer, call, call_in_context, handle};
use crate::context::gpu_of;
use crate::function::checked_call;
use crate::state::State;
use crate::work::Work;

/// The nodes of a graph, and their dependencies.
#[derive(Clone, Default)]
pub(crate) struct Graph {
    nodes: Vec<Node>,
}

#[derive(Clone)]
struct Node {
    handle: usize,
    gpu: usize,
    work: Work,
    /// The handles of the nodes that this node depends on.
    behind: Vec<usize>,
}

/// A graph instance: a copy of the graph. The parameters of its nodes can be replaced.
pub(crate) struct Executable(Graph);

impl Graph {
    /// The nodes in an order that the edges allow. Of two nodes without an order between them the later one runs first, so a missing edge
    /// gives a wrong order.
    fn in_order(&self) -> Result<Vec<&Node>, CUresult> {
        let mut done: Vec<usize> = Vec::new();
        let mut order = Vec::new();
        while order.len() < self.nodes.len() {
            let is_next = |node: &&Node| !done.contains(&node.handle) && node.behind.iter().all(|behind| done.contains(behind));
            let next = self.nodes.iter().rev().find(is_next).ok_or(CUresult::CUDA_ERROR_INVALID_VALUE)?;
            done.push(next.handle);
            order.push(next);
        }
        Ok(order)
    }

    /// Adds a node that depends on the last node.
    pub(crate) fn append(&mut self, handle: usize, gpu: usize, work: Work) {
        let behind = self.nodes.last().map(|last| last.handle).into_iter().collect();
        self.nodes.push(Node { handle, gpu, work, behind });
    }

    fn node(&mut self, node: CUgraphNode) -> Result<&mut Node, CUresult> {
        self.nodes.iter_mut().find(|known| known.handle == node.addr()).ok_or(CUresult::CUDA_ERROR_INVALID_HANDLE)
    }
}

impl State {
    fn graph(&mut self, graph: CUgraph) -> Result<&mut Graph, CUresult> {
        self.graphs.get_mut(&graph.addr()).ok_or(CUresult::CUDA_ERROR_INVALID_HANDLE)
    }

    fn executable(&mut self, executable: CUgraphExec) -> Result<&mut Graph, CUresult> {
        self.executables.get_mut(&executable.addr()).map(|executable| &mut executable.0).ok_or(CUresult::CUDA_ERROR_INVALID_HANDLE)
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuGraphCreate(graph: *mut CUgraph, _flags: u32) -> CUresult {
    call(|state| {
        let new = state.handle();
        state.graphs.insert(new, Graph::default());
        // SAFETY: the caller passes a pointer that is null or valid for writes.
        unsafe { answer(graph, handle(new)) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuGraphDestroy(graph: CUgraph) -> CUresult {
    call(|state| state.graphs.remove(&graph.addr()).map(drop).ok_or(CUresult::CUDA_ERROR_INVALID_HANDLE))
}

/// Adds a node.
///
/// # Safety
/// `dependencies` has the given number of nodes, and `node` is null or valid for writes.
unsafe fn add(
    state: &mut State,
    gpu: usize,
    node: *mut CUgraphNode,
    graph: CUgraph,
    (dependencies, count): (*const CUgraphNode, usize),
    work: Work,
) -> Result<(), CUresult> {
    // SAFETY: the caller guarantees valid pointers, as the driver API requires.
    let behind: Vec<usize> = (0..count).map(|at| unsafe { *dependencies.add(at) }.addr()).collect();
    let new = state.handle();
    let graph = state.graph(graph)?;
    if !behind.iter().all(|behind| graph.nodes.iter().any(|node| node.handle == *behind)) {
        return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
    }
    graph.nodes.push(Node { handle: new, gpu, work, behind });
    // SAFETY: the caller guarantees valid pointers, as the driver API requires.
    unsafe { answer(node, handle(new)) }
}

/// # Safety
/// `params` points to valid launch parameters.
unsafe fn launch_of(state: &State, gpu: usize, params: *const CUDA_KERNEL_NODE_PARAMS) -> Result<Work, CUresult> {
    // SAFETY: the caller guarantees valid pointers, as the driver API requires.
    unsafe {
        let params = &*params;
        let (grid, block) = ([params.gridDimX, params.gridDimY, params.gridDimZ], [params.blockDimX, params.blockDimY, params.blockDimZ]);
        checked_call(state, gpu, params.func, grid, block, params.sharedMemBytes, params.kernelParams).map(Work::Launch)
    }
}

/// A copy of one row; copies of more rows are unsupported.
fn copy_of(params: &CUDA_MEMCPY3D) -> Result<Work, CUresult> {
    if params.Height != 1 || params.Depth != 1 {
        return Err(CUresult::CUDA_ERROR_NOT_SUPPORTED);
    }
    Ok(Work::Copy { from: params.srcDevice, to: params.dstDevice, bytes: params.WidthInBytes })
}

fn fill_of(params: &CUDA_MEMSET_NODE_PARAMS) -> Work {
    let element = params.value.to_le_bytes()[..params.elementSize as usize].to_vec();
    Work::Fill { to: params.dst, element, count: params.width, rows: params.height, pitch: params.pitch }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuGraphAddKernelNode_v2(
    node: *mut CUgraphNode,
    graph: CUgraph,
    dependencies: *const CUgraphNode,
    count: usize,
    params: *const CUDA_KERNEL_NODE_PARAMS,
) -> CUresult {
    // SAFETY: the caller guarantees valid pointers, as the driver API requires.
    call_in_context(|state, gpu| unsafe {
        let work = launch_of(state, gpu, params)?;
        add(state, gpu, node, graph, (dependencies, count), work)
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuGraphAddMemcpyNode(
    node: *mut CUgraphNode,
    graph: CUgraph,
    dependencies: *const CUgraphNode,
    count: usize,
    params: *const CUDA_MEMCPY3D,
    context: CUcontext,
) -> CUresult {
    // SAFETY: the caller guarantees valid pointers, as the driver API requires.
    call(|state| unsafe {
        let gpu = gpu_of(state, context)?;
        add(state, gpu, node, graph, (dependencies, count), copy_of(&*params)?)
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuGraphAddMemsetNode(
    node: *mut CUgraphNode,
    graph: CUgraph,
    dependencies: *const CUgraphNode,
    count: usize,
    params: *const CUDA_MEMSET_NODE_PARAMS,
    context: CUcontext,
) -> CUresult {
    // SAFETY: the caller guarantees valid pointers, as the driver API requires.
    call(|state| unsafe {
        let gpu = gpu_of(state, context)?;
        add(state, gpu, node, graph, (dependencies, count), fill_of(&*params))
    })
}

/// Treats every edge as a full dependency, even if it permits an early start.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuGraphAddDependencies_v2(
    graph: CUgraph,
    from: *const CUgraphNode,
    to: *const CUgraphNode,
    _edges: *const CUgraphEdgeData,
    count: usize,
) -> CUresult {
    call(|state| {
        let graph = state.graph(graph)?;
        for at in 0..count {
            // SAFETY: the caller passes `count` elements in both arrays.
            let (from, to) = unsafe { (*from.add(at), *to.add(at)) };
            let from = graph.node(from)?.handle;
            graph.node(to)?.behind.push(from);
        }
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuGraphInstantiateWithFlags(executable: *mut CUgraphExec, graph: CUgraph, _flags: u64) -> CUresult {
    call(|state| {
        let copied = state.graph(graph)?.clone();
        copied.in_order()?;
        let new = state.handle();
        state.executables.insert(new, Executable(copied));
        // SAFETY: the caller passes a pointer that is null or valid for writes.
        unsafe { answer(executable, handle(new)) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuGraphExecDestroy(executable: CUgraphExec) -> CUresult {
    call(|state| state.executables.remove(&executable.addr()).map(drop).ok_or(CUresult::CUDA_ERROR_INVALID_HANDLE))
}

/// Replaces the parameters of a node. The kind of the node must stay the same, and a function may become another one of the same GPU.
fn replace(state: &mut State, executable: CUgraphExec, node: CUgraphNode, work: Work) -> Result<(), CUresult> {
    let node = state.executable(executable)?.node(node)?;
    if std::mem::discriminant(&node.work) != std::mem::discriminant(&work) {
        return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
    }
    node.work = work;
    Ok(())
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuGraphExecKernelNodeSetParams_v2(
    executable: CUgraphExec,
    node: CUgraphNode,
    params: *const CUDA_KERNEL_NODE_PARAMS,
) -> CUresult {
    call_in_context(|state, gpu| {
        // SAFETY: the caller guarantees valid pointers, as the driver API requires.
        let work = unsafe { launch_of(state, gpu, params)? };
        replace(state, executable, node, work)
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuGraphExecMemcpyNodeSetParams(
    executable: CUgraphExec,
    node: CUgraphNode,
    params: *const CUDA_MEMCPY3D,
    _context: CUcontext,
) -> CUresult {
    // SAFETY: the caller guarantees valid pointers, as the driver API requires.
    call(|state| replace(state, executable, node, copy_of(unsafe { &*params })?))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuGraphExecMemsetNodeSetParams(
    executable: CUgraphExec,
    node: CUgraphNode,
    params: *const CUDA_MEMSET_NODE_PARAMS,
    _context: CUcontext,
) -> CUresult {
    // SAFETY: the caller guarantees valid pointers, as the driver API requires.
    call(|state| replace(state, executable, node, fill_of(unsafe { &*params })))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuGraphLaunch(executable: CUgraphExec, stream: CUstream) -> CUresult {
    call_in_context(|state, gpu| {
        let own = state.own_stream(stream, gpu)?;
        let nodes: Vec<Node> = state.executable(executable)?.in_order()?.into_iter().cloned().collect();
        for node in nodes {
            if node.gpu != gpu {
                return Err(CUresult::CUDA_ERROR_INVALID_CONTEXT);
            }
            state.queue(own, node.work)?;
        }
        Ok(())
    })
}
