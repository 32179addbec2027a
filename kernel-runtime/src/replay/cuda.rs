//! A replay as a CUDA graph, which is built node by node, changed in place, and launched on a stream.
//!
//! CUDA can also record a graph from a stream (`cuStreamBeginCapture`). That forbids many driver calls meanwhile, in the global mode also to other
//! threads. Any forbidden call invalidates the capture, and the capture includes everything for which a stream waits. Here the nodes are known, so
//! they are added one by one.

use std::ffi::c_void;

use cudarc::driver::sys::{self, CUresult};

use super::lent::{Item, Known};
use super::node::{Code, Fill, KernelNode, Node};
use crate::device::Cuda;
use crate::device::driver::{self, check, launch_error};
use crate::device::stream::Queue;
use crate::launch::args::Guards;
use crate::{Error, Result, kernel::entries::Call, kernel::module::pointers, tensor::cuda_slice};

/// An executable graph, and the graph from which it was made.
pub(super) struct Executable {
    cuda: &'static Cuda,
    graph: sys::CUgraph,
    executable: sys::CUgraphExec,
    /// The driver's nodes for each node of the replay.
    nodes: Vec<Nodes>,
}

/// The first version of CUDA with edges between kernels that let the second kernel begin early.
const EARLY_EDGES: i32 = 12_030;

/// One driver node, or two for a fill with 8-byte elements whose halves differ.
type Nodes = [sys::CUgraphNode; 2];

// SAFETY: handles of graphs may be used on any thread, by one thread at a time. All code that changes or launches a graph has `&mut Replay`.
unsafe impl Send for Executable {}
// SAFETY: as above; `&Executable` is reached only through `&mut Replay`.
unsafe impl Sync for Executable {}

/// The node after which the next node is added.
#[derive(Clone, Copy)]
struct Last {
    node: sys::CUgraphNode,
    is_kernel: bool,
}

impl Executable {
    /// Makes a graph whose nodes run one after the other.
    pub(super) fn new(cuda: &'static Cuda, nodes: &[Node]) -> Result<Executable> {
        // Beginning early is an option, which a driver may not support in graphs.
        if nodes.iter().any(|node| matches!(node, Node::Kernel(KernelNode { is_early: true, .. })))
            && driver::cuda_version() >= EARLY_EDGES
            && let Ok(made) = Executable::of(cuda, nodes, true)
        {
            return Ok(made);
        }
        Executable::of(cuda, nodes, false)
    }

    fn of(cuda: &'static Cuda, nodes: &[Node], early: bool) -> Result<Executable> {
        cuda.bind()?;
        let mut graph = std::ptr::null_mut();
        // SAFETY: `graph` is valid for the result.
        check(unsafe { sys::cuGraphCreate(&mut graph, 0) }, "make a graph")?;
        let mut made = Executable { cuda, graph, executable: std::ptr::null_mut(), nodes: Vec::with_capacity(nodes.len()) };
        let mut last = None;
        for node in nodes {
            let added = made.add(node, &mut last, early)?;
            made.nodes.push(added);
        }
        // SAFETY: the graph is complete, and nothing else uses it.
        check(unsafe { sys::cuGraphInstantiateWithFlags(&mut made.executable, graph, 0) }, "make a graph executable")?;
        Ok(made)
    }

    /// Adds the driver's nodes of `node` after the last one.
    fn add(&self, node: &Node, last: &mut Option<Last>, early: bool) -> Result<Nodes> {
        let mut added: Nodes = [std::ptr::null_mut(); 2];
        let context = self.cuda.context.cu_ctx();
        let behind =
            |last: &Option<Last>| (last.as_ref().map_or(std::ptr::null(), |last| &raw const last.node), usize::from(last.is_some()));
        match node {
            Node::Kernel(node) => {
                let overlapped = last.filter(|last| early && node.is_early && last.is_kernel);
                let (dependencies, count) = if overlapped.is_some() { (std::ptr::null(), 0) } else { behind(last) };
                let add = |params: &sys::CUDA_KERNEL_NODE_PARAMS| {
                    // SAFETY: the graph and the dependency are alive, and the parameters are those of the function; the driver copies them.
                    unsafe { sys::cuGraphAddKernelNode_v2(&mut added[0], self.graph, dependencies, count, params) }
                };
                with_params(node, add)?;
                if let Some(last) = overlapped {
                    self.begin_early(last.node, added[0])?;
                }
                *last = Some(Last { node: added[0], is_kernel: true });
            }
            Node::Copy { from, to, bytes } => {
                let (dependencies, count) = behind(last);
                let params = copy(*from, *to, *bytes);
                // SAFETY: the graph and the dependency are alive, and the parameters describe a copy inside the context.
                let code = unsafe { sys::cuGraphAddMemcpyNode(&mut added[0], self.graph, dependencies, count, &params, context) };
                check(code, "add a copy to a graph")?;
                *last = Some(Last { node: added[0], is_kernel: false });
            }
            Node::Fill(fill) => {
                for (node, params) in added.iter_mut().zip(fills(fill).into_iter().flatten()) {
                    let (dependencies, count) = behind(last);
                    // SAFETY: the graph and the dependency are alive, and the parameters describe memory of the context.
                    let code = unsafe { sys::cuGraphAddMemsetNode(node, self.graph, dependencies, count, &params, context) };
                    check(code, "add a fill to a graph")?;
                    *last = Some(Last { node: *node, is_kernel: false });
                }
            }
        }
        Ok(added)
    }

    /// Lets the kernel `to` begin when the programs of the kernel `from` have signalled that it may. The kernel `to` itself waits for the end of
    /// `from`, as in `module::start_early`.
    fn begin_early(&self, from: sys::CUgraphNode, to: sys::CUgraphNode) -> Result<()> {
        let edge = sys::CUgraphEdgeData {
            from_port: sys::CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC as u8,
            to_port: 0,
            type_: sys::CUgraphDependencyType::CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC as u8,
            reserved: [0; 5],
        };
        // SAFETY: both nodes are kernels of this graph.
        check(unsafe { sys::cuGraphAddDependencies_v2(self.graph, &from, &to, &edge, 1) }, "let a launch in a graph begin early")
    }

    /// Gives a node other arguments. Launches that are already queued keep theirs. Returns `false` if the operation needs another number of the
    /// driver's nodes.
    pub(super) fn replace(&self, index: usize, node: &Node) -> Result<bool> {
        self.cuda.bind()?;
        let (context, doing) = (self.cuda.context.cu_ctx(), "change a graph");
        let known = self.nodes[index];
        match node {
            Node::Kernel(node) => with_params(node, |params| {
                // SAFETY: the node is a kernel node of this graph, and the parameters are those of the function; the driver copies them.
                unsafe { sys::cuGraphExecKernelNodeSetParams_v2(self.executable, known[0], params) }
            })?,
            Node::Copy { from, to, bytes } => {
                let params = copy(*from, *to, *bytes);
                // SAFETY: the node is a copy node of this graph.
                check(unsafe { sys::cuGraphExecMemcpyNodeSetParams(self.executable, known[0], &params, context) }, doing)?;
            }
            Node::Fill(fill) => {
                let params = fills(fill);
                if params.iter().flatten().count() != known.iter().filter(|node| !node.is_null()).count() {
                    return Ok(false);
                }
                params.into_iter().flatten().zip(known).try_for_each(|(params, node)| {
                    // SAFETY: the node is a fill node of this graph.
                    check(unsafe { sys::cuGraphExecMemsetNodeSetParams(self.executable, node, &params, context) }, doing)
                })?;
            }
        }
        Ok(true)
    }

    /// Queues a launch, ordered with all other uses of its memory.
    pub(super) fn launch(&self, cuda: &Cuda, stream: Queue<'_>, items: &[Item<'_>], known: &[Known]) -> Result<()> {
        let doing = "launch a graph";
        stream.forbid_capture(doing)?;
        let used = || items.iter().zip(known).filter_map(|(item, known)| Some((&item.pointer.owner, known.written?)));
        let mut guards = Guards::new();
        for (owner, writes) in used() {
            if let Some(guard) = owner.before(writes, stream)? {
                guards.push(guard);
            }
        }
        cuda.bind()?;
        // SAFETY: the graph and the stream are alive. The memory that the nodes use is among the items, or tuning has borrowed it. It stays borrowed
        // until the launch is ordered before every later use, or is complete.
        check(unsafe { sys::cuGraphLaunch(self.executable, stream.raw()) }, doing)?;
        let ordered = cuda_slice::record(guards, stream).and_then(|()| used().try_for_each(|(owner, writes)| owner.after(writes, stream)));
        ordered.map_err(|error| stream.finish(error))
    }
}

impl Drop for Executable {
    /// The driver keeps a running graph alive until it is complete.
    fn drop(&mut self) {
        if self.cuda.bind().is_err() {
            return;
        }
        // SAFETY: this value owns both handles, and nothing uses them any more.
        unsafe {
            if !self.executable.is_null() {
                let _ = sys::cuGraphExecDestroy(self.executable);
            }
            let _ = sys::cuGraphDestroy(self.graph);
        }
    }
}

/// Calls the driver with the parameters of a launch. Launches of one node may run different entries, because the driver lets a node change its function. The PTX states how many CTAs a cluster has, so no attribute is needed.
fn with_params(node: &KernelNode, call: impl FnOnce(&sys::CUDA_KERNEL_NODE_PARAMS) -> CUresult) -> Result<()> {
    let KernelNode { kernel, code, words, grid, .. } = node;
    let Code::Cuda(loaded) = code else { return Err(Error::NotCuda { what: "a captured launch" }) };
    let given: Vec<&u64> = words.iter().collect();
    let launch = loaded.call(kernel.name(), &given, *grid)?;
    let mut params: Vec<*mut c_void> = pointers(words.iter(), &launch).collect();
    let Call { function, ctas: [x, y, z], threads, shared_bytes, .. } = launch;
    let params = sys::CUDA_KERNEL_NODE_PARAMS {
        func: function.raw(),
        gridDimX: x,
        gridDimY: y,
        gridDimZ: z,
        blockDimX: threads,
        blockDimY: 1,
        blockDimZ: 1,
        sharedMemBytes: shared_bytes,
        kernelParams: params.as_mut_ptr(),
        extra: std::ptr::null_mut(),
        kern: std::ptr::null_mut(),
        ctx: std::ptr::null_mut(),
    };
    match call(&params) {
        CUresult::CUDA_SUCCESS => Ok(()),
        code => Err(launch_error(code, kernel.name(), threads, shared_bytes)),
    }
}

/// The parameters of a copy of one row of bytes.
fn copy(from: u64, to: u64, bytes: usize) -> sys::CUDA_MEMCPY3D {
    let device = sys::CUmemorytype::CU_MEMORYTYPE_DEVICE;
    sys::CUDA_MEMCPY3D {
        srcXInBytes: 0,
        srcY: 0,
        srcZ: 0,
        srcLOD: 0,
        srcMemoryType: device,
        srcHost: std::ptr::null(),
        srcDevice: from,
        srcArray: std::ptr::null_mut(),
        reserved0: std::ptr::null_mut(),
        srcPitch: bytes,
        srcHeight: 1,
        dstXInBytes: 0,
        dstY: 0,
        dstZ: 0,
        dstLOD: 0,
        dstMemoryType: device,
        dstHost: std::ptr::null_mut(),
        dstDevice: to,
        dstArray: std::ptr::null_mut(),
        reserved1: std::ptr::null_mut(),
        dstPitch: bytes,
        dstHeight: 1,
        WidthInBytes: bytes,
        Height: 1,
        Depth: 1,
    }
}

/// The parameters of a fill. The driver fills with elements of 1, 2 and 4 bytes. Each half of an 8-byte element is a column, one 4-byte word wide, of
/// a 2D region with a pitch of 8 bytes.
fn fills(&Fill { address, count, width, bits }: &Fill) -> [Option<sys::CUDA_MEMSET_NODE_PARAMS>; 2] {
    let (low, high) = (bits as u32, (bits >> 32) as u32);
    let params = |dst: u64, value: u32, bytes: u32, width: usize, height: usize, pitch: usize| {
        Some(sys::CUDA_MEMSET_NODE_PARAMS { dst, pitch, value, elementSize: bytes, width, height })
    };
    match width {
        8 if low == high => [params(address, low, 4, 2 * count, 1, 0), None],
        8 => [params(address, low, 4, 1, count, 8), params(address + 4, high, 4, 1, count, 8)],
        width => [params(address, low, width as u32, count, 1, 0), None],
    }
}
