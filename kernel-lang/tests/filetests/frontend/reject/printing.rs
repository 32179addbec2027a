#[kernel(N = 64)]
fn k<const N: usize>(x: Ptr<f32>, v: View<f32, 1>, y: PtrMut<f32>) {
    let a = load(x + arange(0, N));
    device_print!();
    device_print!(a);
    device_print!("a is {}");
    device_print!("a is {} and {}", a);
    device_print!("a is", a);
    device_print!("{:>8}", a);
    device_print!("{a");
    device_print!("a}");
    device_print!("{0}", a);
    device_print!("{b}");
    device_print!("{}", x);
    device_print!("{}", v);
    device_print!("{} {}", a, arange(0, 2 * N));
    device_print!("{}", (a, a));
    static_print!();
    static_print!(N);
    static_print!("{}");
    static_print!("{}", N, N);
    static_print!("{n}");
    let b = device_print!("{}", a);
    println!("{}", a);
    store(y + arange(0, N), associative_scan(a, 0, |p, q| { device_print!("{p}"); p + q }));
}
