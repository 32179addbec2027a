#[kernel(T = [f32, u32], N = 64)]
fn inline_ptx<T: Element, const N: usize>(x: Ptr<u32>, h: Ptr<f16>, y: PtrMut<u32>, z: PtrMut<T>, s: u32, t: f32) {
    let at = arange(0, N);
    let (a, b) = (load(x + at), load(x + at + N));
    // A scalar meets a tile, the closure's constant takes the result's type, and the result is a value like any other.
    let swapped = inline_ptx!("prmt.b32 {d}, {a}, {k}, 0x5140;", d: u32, a = a, k = s, cpu = |a, k| (a & 0xff) | (k & 0xff) << 8);
    store(y + at, swapped + 1);
    // Several texts are one, and several results a tuple.
    let (sum, is_less) = inline_ptx!(
        "{{ .reg .b32 t;",
        "   add.u32 t, {p}, {q};   // wraps",
        "   mov.b32 {sum}, t;",
        "   setp.lt.u32 {is_less}, {p}, {q}; }}",
        p = a + b,
        q = b,
        sum: u32,
        is_less: bool,
        cpu = |p, q| (p + q, p < q),
    );
    store(y + at, sum, mask = is_less);
    // A variable that only the text names is an operand, too.
    let root = inline_ptx!("sqrt.approx.f32 {root}, {t};", root: f32, cpu = |t| t.sqrt());
    store(y, root as u32);
    let halves = inline_ptx!("fma.rn.f16x2 {r}, {v}, {v}, {v};", r: f16, v = load(h + at), pack = 2, isa = 7.1, cpu = |v| fma(v, v, v));
    store(y + at, halves as u32);
    // The same of every type, by what has its width.
    let v = load(z + at);
    let copy = if T == f32 {
        inline_ptx!("mov.f32 {d}, {v};", d: T, cpu = |v| v)
    } else {
        inline_ptx!("mov.b32 {d}, {v};", d: T, cpu = |v| v)
    };
    store(z + at, copy);
    store(y, reduce(a, 0, |p, q| inline_ptx!("max.u32 {m}, {p}, {q};", m: u32, cpu = |p, q| max(p, q))));
}

#[kernel(unchecked)]
fn inline_ptx_unchecked(y: PtrMut<u32>) {
    inline_ptx!("nanosleep.u32 {t};", t = 100u32, volatile = true, cpu = |t| {});
    let lane = inline_ptx!("mov.u32 {lane}, %laneid;", lane: u32, volatile = true, cpu = || 0);
    store(y, lane);
}
