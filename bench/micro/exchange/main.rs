//! What an exchange costs over sockets: the crawler's hands beside bare rings, and what open connections cost.
//!
//! The server is this program again, in a process and on a CPU of its own. Three tables:
//! CPU time of the client's thread for a GET of 16 KiB over kept connections, by the number of connections, each client
//! in turn, medians of ROUNDS (default 5) and of the rounds' ratios to the best bare ring: of the kernel's and the
//! runtime's part (the hands' is sampled; a bare ring does nothing else) and of all; memory of an idle connection;
//! and SLOW (default 19,000, less where fewer files may be open) connections to a server that drips: memory of each,
//! and the latency of another host beside them and without them, PAIRS times (default 40).
//! Checked: every body whole, by its length; the slow ones all open at once.
//! The server that drips gives way to the other, with which it shares a CPU: what the client does is to be seen.
//! Limits: the bare rings look at lengths alone: no head is read, no limit is kept, no deadline.

mod bare;
mod server;
mod slow;

use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::net::{IpAddr, Ipv4Addr};
use std::process::{Child, Command, Stdio};
use std::rc::Rc;
use std::time::Duration;

use ringcrawl_base::stage::Stage;
use ringcrawl_brain::job::{FetchJob, JobKind};
use ringcrawl_config::{Config, PrivateAddresses};
use ringcrawl_crawler::fetch::Hands;
use ringcrawl_ring::{self as ring, Runtime, Sampler, Thread};
use ringcrawl_url::Url;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The body of the server's answers.
const BODY_BYTES: usize = 16 << 10;

fn main() {
    let cpus = core_affinity::get_core_ids().unwrap_or_default();
    if std::env::var_os("SERVE").is_some() {
        cpus.last().map(|cpu| core_affinity::set_for_current(*cpu));
        return server::serve();
    }
    if let Ok(port) = std::env::var("ALONE") {
        cpus.first().map(|cpu| core_affinity::set_for_current(*cpu));
        return slow::alone(port.parse().expect("a port"));
    }
    let in_test = !std::env::args().any(|argument| argument == "--bench");
    let files = ring::raise_file_limit();
    // Before this thread has its CPU, which the server would inherit.
    let ((server, port), (other, other_port), (dripping, drip_port)) =
        (start_server(&[]), start_server(&[]), start_server(&["chrt", "--idle", "0"]));
    cpus.first().map(|cpu| core_affinity::set_for_current(*cpu));
    if let Ok(client_name) = std::env::var("ONLY") {
        // One part alone, for a profiler.
        if client_name == "slow" {
            return slow::connections(
                &dripping,
                drip_port,
                other_port,
                number("SLOW", 19_000),
                2_000,
                number("PAIRS", 40),
            );
        }
        let client = CLIENTS.iter().find(|(name, _)| *name == client_name).expect("a client").1;
        let (connections, requests) = (number("CONNECTIONS", 512), number("REQUESTS", 600_000));
        let (ring, all) = client(port, connections, requests).micros(requests);
        println!("{client_name}: {ring:.2} of {all:.2}");
        return;
    }
    let most = usize::try_from(files).unwrap_or(usize::MAX).saturating_sub(200);
    idle(port, if in_test { 50 } else { 10_000.min(most) });
    slow::connections(
        &dripping,
        drip_port,
        other_port,
        if in_test { 50 } else { number("SLOW", 19_000).min(most) },
        if in_test { 16 } else { 2_000 },
        if in_test { 1 } else { number("PAIRS", 40) },
    );
    drop((other, dripping));
    // The last, as it leaves the allocator with memory that the others would count as there before.
    costs(port, if in_test { 1 } else { number("ROUNDS", 5) }, if in_test { 300 } else { 60_000 }, in_test);
    drop(server);
}

fn number(name: &str, default: usize) -> usize {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// A process that ends with this value.
struct Server(Child);

impl Server {
    /// Stops it, or lets it go on.
    fn signal(&self, name: &str) {
        let killed = Command::new("kill").args(["-s", name, &self.0.id().to_string()]).status();
        assert!(killed.expect("kill").success());
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Servers share a CPU: one that takes only what the others leave lets them go first, as if it were a machine of its own.
fn start_server(scheduled_by: &[&str]) -> (Server, u16) {
    let program = std::env::current_exe().expect("a path");
    let mut words = scheduled_by.iter().map(OsStr::new).chain([program.as_os_str()]);
    let mut command = Command::new(words.next().expect("a program"));
    command.args(words).env("SERVE", "1").stdout(Stdio::piped());
    let mut child = command.spawn().expect("a process");
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("a pipe")).read_line(&mut line).expect("a line");
    (Server(child), line.trim().parse().expect("a port"))
}

/// CPU time of the client's thread.
#[derive(Clone, Copy)]
struct Used {
    /// Of the kernel, the runtime and the steps between: stage `ring`.
    ring: Duration,
    all: Duration,
}

impl Used {
    /// Microseconds a request.
    fn micros(self, requests: usize) -> (f64, f64) {
        let each = |time: Duration| time.as_secs_f64() * 1e6 / requests as f64;
        (each(self.ring), each(self.all))
    }
}

/// Sends so many requests to a port over so many connections.
type Client = fn(u16, usize, usize) -> Used;

const CLIENTS: [(&str, Client); 3] = [("bare", bare::single), ("multishot", bare::multishot), ("hands", hands)];

/// CPU time of a request, by client and number of connections.
fn costs(port: u16, rounds: usize, requests: usize, in_test: bool) {
    let heads = ["kernel+ring us", "to best", "all us", "to best"];
    print!("\n{:<12} {:<10}", "connections", "client");
    heads.iter().for_each(|head| print!(" {head:>15}"));
    println!();
    for connections in if in_test { vec![8] } else { vec![64, 512, 4_096] } {
        let mut micros = vec![Vec::new(); CLIENTS.len()];
        for _ in 0..rounds {
            for ((_, client), micros) in CLIENTS.iter().zip(&mut micros) {
                micros.push(client(port, connections, requests).micros(requests));
            }
        }
        for ((name, _), own) in CLIENTS.iter().zip(&micros) {
            print!("{connections:<12} {name:<10}");
            for part in [|used: &(f64, f64)| used.0, |used: &(f64, f64)| used.1] {
                let bare = micros[0].iter().zip(&micros[1]).map(|(one, other)| one.1.min(other.1));
                let ratios = own.iter().map(part).zip(bare).map(|(own, bare)| own / bare).collect();
                print!(" {:>15.2} {:>15.3}", median(own.iter().map(part).collect()), median(ratios));
            }
            println!();
        }
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn this_thread() -> Thread {
    let thread = Thread::default();
    thread.announce();
    thread
}

/// CPU time of this thread so far.
fn cpu_time() -> Duration {
    this_thread().cpu_time().expect("a clock")
}

fn config(connections: usize) -> Config {
    let mut config = Config::default();
    config.fetch.in_flight_max = connections + 64;
    config.fetch.idle_connections_max = connections + 64;
    config.fetch.idle_timeout = Duration::from_secs(600);
    config.fetch.deadline = Duration::from_secs(600);
    config.fetch.first_byte_timeout = Duration::from_secs(600);
    // The server that drips gives way to everything, and a queue that is full drops what comes: it is tried again.
    config.fetch.connect_timeout = Duration::from_secs(120);
    // What drips is to stay.
    config.fetch.rate_min = 0;
    config.fetch.private_addresses = PrivateAddresses::LoopbackOnly;
    config
}

fn job(url: &Url) -> FetchJob {
    FetchJob { addr: Some(IpAddr::V4(Ipv4Addr::LOCALHOST)), ..FetchJob::new(JobKind::Page, url.clone()) }
}

async fn get(hands: &Rc<Hands>, url: &Url) -> usize {
    ask(hands, &job(url)).await
}

async fn ask(hands: &Rc<Hands>, job: &FetchJob) -> usize {
    match hands.exchange(job).await {
        Ok(exchange) => exchange.response.body.len(),
        Err(failure) => panic!("{}: {failure:?}", job.url),
    }
}

fn with_hands<T>(connections: usize, test: impl AsyncFnOnce(Rc<Hands>) -> T) -> T {
    let runtime = Runtime::new(connections).expect("io_uring");
    runtime.block_on(async {
        test(Rc::new(Hands::new(&config(connections), "bench/1.0".to_owned()).expect("hands"))).await
    })
}

/// The crawler's own way: `connections` tasks that ask one after another.
fn hands(port: u16, connections: usize, requests: usize) -> Used {
    with_hands(connections, async |hands| {
        let url = Url::parse(&format!("http://127.0.0.1:{port}/page")).expect("a URL");
        // The first request of each makes its connection, and is not counted.
        let mut used = Used { ring: Duration::ZERO, all: Duration::ZERO };
        for each in [1, requests.div_ceil(connections)] {
            let sampler = Sampler::start(&this_thread()).expect("a sampler");
            let before = cpu_time();
            let tasks: Vec<_> = (0..connections)
                .map(|_| {
                    let (hands, job) = (hands.clone(), job(&url));
                    ring::spawn(async move {
                        for _ in 0..each {
                            assert_eq!(ask(&hands, &job).await, BODY_BYTES);
                        }
                    })
                })
                .collect();
            for task in tasks {
                task.await.expect("a task");
            }
            let part = requests as f64 / (requests.div_ceil(connections) * connections) as f64;
            let all = (cpu_time() - before).mul_f64(part);
            let seen = sampler.sampled();
            let sum: Duration = seen.user.iter().chain(&seen.kernel).sum();
            let ring: Duration = seen.kernel.iter().chain([&seen.user[Stage::Ring as usize]]).sum();
            used = Used { ring: all.mul_f64(ring.as_secs_f64() / sum.as_secs_f64().max(1e-9)), all };
        }
        used
    })
}

fn resident_kib() -> f64 {
    kib("/proc/self/status", "VmRSS:")
}

/// What the kernel has for its own small objects, of the whole machine: sockets, files and operations are such.
fn kernel_kib() -> f64 {
    kib("/proc/meminfo", "Slab:")
}

fn kib(file: &str, name: &str) -> f64 {
    let text = std::fs::read_to_string(file).expect("a file of /proc");
    let line = text.lines().find(|line| line.starts_with(name)).expect("a line of it");
    line.split_whitespace().nth(1).expect("a number").parse().expect("a number")
}

/// Memory of connections that are kept and not used.
fn idle(port: u16, connections: usize) {
    with_hands(connections, async |hands| {
        let (before, kernel_before) = (resident_kib(), kernel_kib());
        for at in 0..connections {
            // Another name each time: no connection is used twice.
            let url = Url::parse(&format!("http://h{at}.example:{port}/page")).expect("a URL");
            assert_eq!(get(&hands, &url).await, BODY_BYTES);
        }
        assert_eq!(hands.idle_connections(), connections);
        let [each, kernels] =
            [resident_kib() - before, kernel_kib() - kernel_before].map(|kib| kib * 1024.0 / connections as f64);
        println!("\n{connections} idle connections: {each:.0} bytes of resident memory each");
        println!("{kernels:.0} bytes of the kernel's for each, the server's end included");
    });
}
