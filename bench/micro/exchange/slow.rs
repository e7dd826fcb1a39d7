//! Connections to servers that are slow: what memory each takes, and what requests to another host take beside them.

use std::io::{BufRead, BufReader, Write};
use std::process::{ChildStdout, Command, Stdio};
use std::rc::Rc;
use std::time::Duration;

use ringcrawl_crawler::fetch::Hands;
use ringcrawl_ring as ring;
use ringcrawl_url::Url;

use super::{BODY_BYTES, Server, cpu_time, get, median, resident_kib, with_hands};

/// Connections to a server that drips, and requests to another, a process of its own.
///
/// A machine that gives its processors to others now and then has latencies of its own, which change within seconds. So
/// each pass beside those that drip has one just before it to be compared with: a client's that has no such connections,
/// while their server is stopped.
pub fn connections(dripping: &Server, port: u16, other_port: u16, connections: usize, requests: usize, pairs: usize) {
    let mut other = Alone::start(other_port);
    with_hands(connections, async |hands| {
        let drip = Url::parse(&format!("http://127.0.0.1:{port}/drip")).expect("a URL");
        let before = resident_kib();
        let mut tasks = Vec::new();
        while tasks.len() < connections {
            // No more at once than a server's queue of connections takes in (net.core.somaxconn).
            tasks.extend((tasks.len()..connections.min(tasks.len() + 2_000)).map(|_| {
                let (hands, drip) = (hands.clone(), drip.clone());
                ring::spawn(async move { get(&hands, &drip).await })
            }));
            // Who is answered here knows that the server has taken those before.
            let taken = Url::parse(&format!("http://127.0.0.3:{port}/page?{}", tasks.len())).expect("a URL");
            assert_eq!(get(&hands, &taken).await, BODY_BYTES);
            while hands.counters().connects.get() < tasks.len() as u64 {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
        tokio::time::sleep(SETTLED).await;
        assert!(hands.open_connections() >= connections);
        let each = (resident_kib() - before) * 1024.0 / connections as f64;
        let used = cpu_time();
        tokio::time::sleep(SETTLED).await;
        let drip_micros = (cpu_time() - used).as_secs_f64() * 1e6 / (connections as f64 * SETTLED.as_secs_f64());
        println!(
            "\n{connections} connections to a server that drips a byte a second: {each:.0} bytes of resident memory each,"
        );
        println!("{drip_micros:.1} us of CPU for each byte");
        let (mut alone, mut beside, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..pairs {
            dripping.signal("STOP");
            let without = other.pass(requests);
            dripping.signal("CONT");
            // What was due meanwhile comes at once.
            tokio::time::sleep(SETTLED).await;
            let with = pass(&hands, other_port, requests).await;
            ratios.push(with.1 / without.1);
            alone.push(without);
            beside.push(with);
        }
        println!("{:<28} {:>10} {:>10}", "another host's latency, us", "p50", "p99");
        for (name, of) in [("alone", alone), ("beside them", beside)] {
            let part = |part: fn(&(f64, f64)) -> f64| median(of.iter().map(part).collect());
            println!("{name:<28} {:>10.0} {:>10.0}", part(|pass| pass.0), part(|pass| pass.1));
        }
        ratios.sort_by(f64::total_cmp);
        let at = |quarters: usize| ratios[(ratios.len() - 1) * quarters / 4];
        println!("p99 beside to alone, of each pair: {:.2} (quartiles {:.2}, {:.2})", at(2), at(1), at(3));
        tasks.iter().for_each(tokio::task::JoinHandle::abort);
    });
}

/// A client that has no other connections, in a process of its own on this one's CPU.
struct Alone(Server, BufReader<ChildStdout>);

impl Alone {
    fn start(port: u16) -> Alone {
        let mut command = Command::new(std::env::current_exe().expect("a path"));
        command.env("ALONE", port.to_string()).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("a process");
        let answers = BufReader::new(child.stdout.take().expect("a pipe"));
        Alone(Server(child), answers)
    }

    fn pass(&mut self, requests: usize) -> (f64, f64) {
        let asked = self.0.0.stdin.as_mut().expect("a pipe");
        writeln!(asked, "{requests}").expect("a client");
        let mut line = String::new();
        self.1.read_line(&mut line).expect("a client");
        let (median, late) = line.trim().split_once(' ').expect("two figures");
        (median.parse().expect("a figure"), late.parse().expect("a figure"))
    }
}

/// A pass for each line, which says how many requests; to the end of the lines.
pub fn alone(port: u16) {
    with_hands(16, async |hands| {
        for line in std::io::stdin().lines() {
            let requests = line.expect("a line").parse().expect("a number");
            let (median, late) = pass(&hands, port, requests).await;
            println!("{median} {late}");
        }
    });
}

/// After this time what was late has come.
const SETTLED: Duration = Duration::from_millis(1_500);

/// Median and 99th percentile of `requests` requests, 16 at a time, in µs, behind a quarter as many that do not count: who
/// waited has cold caches.
async fn pass(hands: &Rc<Hands>, port: u16, requests: usize) -> (f64, f64) {
    let url = Url::parse(&format!("http://127.0.0.2:{port}/page")).expect("a URL");
    let each = requests.div_ceil(16);
    let tasks: Vec<_> = (0..16)
        .map(|_| {
            let (hands, url) = (hands.clone(), url.clone());
            ring::spawn(async move {
                let mut micros = Vec::new();
                for at in 0..each + each / 4 {
                    let begun = std::time::Instant::now();
                    assert_eq!(get(&hands, &url).await, BODY_BYTES);
                    if at >= each / 4 {
                        micros.push(begun.elapsed().as_secs_f64() * 1e6);
                    }
                    ring::sleep_until(ring::now() + Duration::from_millis(2)).await;
                }
                micros
            })
        })
        .collect();
    let mut all = Vec::new();
    for task in tasks {
        all.extend(task.await.expect("a task"));
    }
    all.sort_by(f64::total_cmp);
    (all[all.len() / 2], all[all.len() * 99 / 100])
}
