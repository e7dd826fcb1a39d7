//! Seeds that lead elsewhere, or nowhere: what is in scope of them, what is told, and how the crawl ends.

use std::io::Write as _;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use hickory_proto::op::ResponseCode;
use ringcrawl_base::TempFolder;

use crate::rig::names::{NameServer, Reply};
use crate::rig::program::{Ended, run};
use crate::rig::servers::{read_request, secure_server, server};

/// A server of all names, which answers `host/path` with what `answer` gives: a head behind the version, and a body.
pub(super) fn names_server(
    answer: impl Fn(&str, u16) -> (String, String) + Send + Sync + 'static,
) -> (SocketAddr, Arc<Mutex<Vec<String>>>) {
    let asked: Arc<Mutex<Vec<String>>> = Arc::default();
    let noted = Arc::clone(&asked);
    let (addr, _) = server(move |mut stream, _| {
        let port = stream.local_addr().expect("its address").port();
        while let Some(request) = read_request(&mut stream) {
            let path = request.split_whitespace().nth(1).unwrap_or_default();
            let host = request.lines().find_map(|line| line.strip_prefix("Host: ")).unwrap_or_default();
            let place = format!("{}{path}", host.split(':').next().unwrap_or_default());
            let (head, body) = match path {
                "/robots.txt" => ("404 Not Found".to_owned(), String::new()),
                _ => answer(&place, port),
            };
            noted.lock().expect("a log").push(place);
            let _ = write!(stream, "HTTP/1.1 {head}\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        }
    });
    (addr, asked)
}

fn redirect(to: &str) -> (String, String) {
    (format!("301 Moved Permanently\r\nLocation: {to}"), String::new())
}

pub(super) fn page(body: &str) -> (String, String) {
    ("200 OK\r\nContent-Type: text/html".to_owned(), body.to_owned())
}

/// The configuration of a crawl without delays, whose names are all on loopback but for `*.none`, which do not exist.
pub(super) fn config(folder: &TempFolder, more: &str) -> String {
    let names = NameServer::start(|question, message| {
        let name = question.name().to_utf8();
        match name.trim_end_matches('.').ends_with("none") {
            true => message.metadata.response_code = ResponseCode::NXDomain,
            false if question.query_type() == hickory_proto::rr::RecordType::A => {
                let address = hickory_proto::rr::RData::A(std::net::Ipv4Addr::LOCALHOST.into());
                message.add_answer(hickory_proto::rr::Record::from_rdata(question.name().clone(), 60, address));
            }
            false => {}
        }
        Reply::Message
    });
    let text = format!(
        "dns.servers = [\"{}\"]\npoliteness.host_delay = \"0s\"\npoliteness.site_delay = \"0s\"\npoliteness.ip_delay = \"0s\"\n\
         crawl.shards = 2\n{more}\n",
        names.addr
    );
    folder.file("config.toml", &text)
}

/// What a crawl of `seeds` says, and the URLs that it knows with their causes.
fn crawl(folder: &TempFolder, config: &str, dir: &str, seeds: &[&str], code: i32) -> (Ended, Vec<String>) {
    let dir = folder.at(dir);
    let ended = run(&[&["crawl", "--dir", &dir, "-c", config], seeds].concat()).expect(code);
    let listed = run(&["urls", &dir]).expect(0).out;
    let mut urls: Vec<String> = listed
        .lines()
        .map(|line| {
            let columns: Vec<&str> = line.split('\t').collect();
            format!("{} {}", columns[1], columns[4])
        })
        .collect();
    urls.sort();
    (ended, urls)
}

/// A redirect and a refresh, from each name to the other, and from http to https.
#[test]
fn the_twin_of_a_seed_is_in_scope() {
    let folder = TempFolder::new("seed-twins");
    let (secure, _) = secure_server();
    let tls = secure.port();
    let (addr, _) = names_server(move |place, port| match place {
        "a.test/" => redirect(&format!("http://www.a.test:{port}/")),
        "www.b.test/" => redirect(&format!("http://b.test:{port}/")),
        "c.test/" => page(&format!("<meta http-equiv=refresh content='0; url=http://www.c.test:{port}/home'>")),
        "localhost/" => redirect(&format!("https://localhost:{tls}/")),
        "www.a.test/" => page(&format!("<a href='http://other.a.test:{port}/'>another host</a>")),
        _ => page("here"),
    });
    let port = addr.port();
    let config = config(&folder, "scope.follow = \"seed-hosts\"\ntls.certificates = \"record\"");
    let seeds = ["a.test", "www.b.test", "c.test", "localhost"].map(|host| format!("http://{host}:{port}/"));
    let seeds = seeds.each_ref().map(String::as_str);
    let (ended, urls) = crawl(&folder, &config, "crawl", &seeds, 0);
    let mut expected = vec![
        format!("301 http://a.test:{port}/"),
        format!("200 http://www.a.test:{port}/"),
        format!("301 http://www.b.test:{port}/"),
        format!("200 http://b.test:{port}/"),
        format!("200 http://c.test:{port}/"),
        format!("200 http://www.c.test:{port}/home"),
        format!("301 http://localhost:{port}/"),
        format!("200 https://localhost:{tls}/"),
    ];
    expected.sort();
    assert_eq!(urls, expected);
    assert!(!ended.err.contains("leads to"), "{}", ended.err);
}

/// By a redirect, over a twin, by a refresh; to what rules deny there is no line to add.
#[test]
fn a_seed_that_leads_out_of_scope_is_told_with_the_line_to_add() {
    let folder = TempFolder::new("seeds-elsewhere");
    let (addr, _) = names_server(|place, port| match place {
        "a.test/" => redirect(&format!("http://new.test:{port}/")),
        "b.test/" => redirect(&format!("http://www.b.test:{port}/")),
        "www.b.test/" => redirect(&format!("http://far.test:{port}/b")),
        "c.test/" => {
            page(&format!("<meta http-equiv=refresh content='5;url=http://new.test:{port}/c'><a href='/more'>more</a>"))
        }
        "d.test/" => redirect(&format!("http://bad.test:{port}/")),
        // Of a link nobody expects that it is followed.
        _ => page(&format!("<a href='http://far.test:{port}/'>far</a>")),
    });
    let port = addr.port();
    let rules = folder.file("scope.rules", "deny host=bad.test\n");
    let config = config(&folder, &format!("scope.follow = \"seed-hosts\"\nscope.rules = {rules:?}"));
    let seeds = ["a", "b", "c", "d"].map(|host| format!("http://{host}.test:{port}/"));
    let seeds = seeds.each_ref().map(String::as_str);
    let (ended, urls) = crawl(&folder, &config, "crawl", &seeds, 0);
    let told: std::collections::BTreeSet<&str> = ended.err.lines().filter(|line| line.contains("leads to")).collect();
    let left_out = "which scope.follow = \"seed-hosts\" leaves out; to crawl that, add this line to the seeds:";
    let expected = [
        format!("seed http://a.test:{port}/ leads to http://new.test:{port}/, {left_out} http://new.test:{port}/"),
        format!(
            "a seed's redirect, http://www.b.test:{port}/ leads to http://far.test:{port}/b, {left_out} http://far.test:{port}/b"
        ),
        format!("seed http://c.test:{port}/ leads to http://new.test:{port}/c, {left_out} http://new.test:{port}/c"),
        format!("seed http://d.test:{port}/ leads to http://bad.test:{port}/, which line 1 of scope.rules denies"),
    ];
    assert_eq!(told, expected.iter().map(String::as_str).collect());
    assert!(urls.contains(&format!("200 http://c.test:{port}/more")), "{urls:?}");
    // The line is right as it is.
    let line = expected[0].rsplit(' ').next().expect("a line");
    let list = folder.file("more.txt", line);
    let (_, urls) = crawl(&folder, &config, "crawl", &["--seeds", &list], 0);
    assert!(urls.contains(&format!("200 http://new.test:{port}/")), "{urls:?}");
}

/// Names that do not exist, servers that send away or answer with errors: each is told, and "finished" is no success.
#[test]
fn a_crawl_whose_seeds_gave_no_page_ends_with_3_and_says_why() {
    let folder = TempFolder::new("seeds-without-pages");
    let (addr, _) = names_server(|place, port| match place {
        "a.test/" => redirect(&format!("http://new.test:{port}/")),
        "refresh.test/" => page(&format!("<meta http-equiv=refresh content='0;url=http://new.test:{port}/'>")),
        "good.test/" => page("a page"),
        _ => ("410 Gone".to_owned(), String::new()),
    });
    let port = addr.port();
    let config = config(&folder, "scope.follow = \"seed-sites\"");
    let of = |host: &str| format!("http://{host}:{port}/");
    let told = |ended: &Ended| -> Vec<String> {
        let lines = ended.err.lines().skip_while(|line| *line != "ringcrawl: no seed gave a page:");
        let mut lines: Vec<String> = lines.skip(1).map(str::to_owned).collect();
        lines.sort();
        lines
    };
    let mut expected = vec![
        format!("ringcrawl: {}: status 301, a redirect", of("a.test")),
        format!("ringcrawl: {}: status 410", of("gone.test")),
        format!("ringcrawl: {}: dns-not-found: the name does not exist, or has no address", of("www.none")),
    ];
    expected.sort();
    let seeds = [of("a.test"), of("gone.test"), of("www.none")];
    let seeds = seeds.each_ref().map(String::as_str);
    let (ended, _) = crawl(&folder, &config, "barren", &seeds, 3);
    assert!(ended.err.contains("finished after"), "{}", ended.err);
    assert_eq!(told(&ended), expected);
    // Asked again it has not become a success.
    assert_eq!(told(&crawl(&folder, &config, "barren", &[], 3).0), expected);
    // Each alone, and a page that does nothing but lead away.
    for seed in seeds {
        let (ended, _) = crawl(&folder, &config, &format!("alone-{}", seed.len()), &[seed], 3);
        assert_eq!(told(&ended).len(), 1, "{}", ended.err);
    }
    let (ended, _) = crawl(&folder, &config, "refreshed", &[&of("refresh.test")], 3);
    let away = format!("ringcrawl: {}: status 200, with a page that leads out of scope", of("refresh.test"));
    assert_eq!(told(&ended), [away]);
    // One page of one seed is enough, also of an earlier run.
    let seeds = [of("good.test"), of("refresh.test"), of("www.none")];
    let seeds = seeds.each_ref().map(String::as_str);
    for seeds in [&seeds[..], &[], &[&of("gone.test")]] {
        let (ended, _) = crawl(&folder, &config, "good", seeds, 0);
        assert!(told(&ended).is_empty(), "{}", ended.err);
    }
}

/// The whole list is told with file and line; one good seed is enough where that is wanted.
#[test]
fn a_bad_line_stops_the_start_or_is_skipped() {
    let folder = TempFolder::new("seeds-errors");
    let (addr, _) = names_server(|_, _| page("a page"));
    let good = format!("http://a.test:{}/", addr.port());
    let config = config(&folder, "scope.bad_ports = \"deny\"");
    let list = folder.file(
        "seeds.txt",
        &format!("# ours\n{good}#top # the first one\nhttp:/b.test\n/about\nhttp://a.test:25/ # mail\n"),
    );
    let wrong = [
        format!(
            "{list}:3: \"http:/b.test\": \"http\" is followed by \":/\", not by \"://\" (did you mean http://b.test/?)"
        ),
        format!("{list}:4: \"/about\": a relative URL: a seed needs a host, such as https://example.org/path"),
    ];
    let dir = folder.at("refused");
    let ended = run(&["crawl", "--dir", &dir, "-c", &config, "--seeds", &list]).expect(2);
    assert_eq!(ended.err.lines().collect::<Vec<_>>(), wrong.each_ref().map(|line| format!("ringcrawl: {line}")));
    assert!(!std::path::Path::new(&dir).exists());
    let skip = ["--quiet", "--seeds", &list, "--set", "seeds.errors=skip"];
    let (ended, urls) = crawl(&folder, &config, "skipped", &skip, 0);
    assert_eq!(urls, [format!("200 {good}")]);
    let skipped: Vec<&str> = ended.err.lines().filter_map(|line| line.strip_prefix("skipped: ")).collect();
    let port = "seed http://a.test:25/ is out of scope: its port belongs to another protocol; give another seed, or set scope.bad_ports = \"allow\"";
    assert_eq!(skipped, [&*wrong[0], &*wrong[1], port]);
    // A list that is not there is told with its option.
    let missing = folder.at("missing.txt");
    let ended = run(&["crawl", "--dir", &folder.at("none"), "-c", &config, "--seeds", &missing]).expect(2);
    assert_eq!(ended.err, format!("ringcrawl: --seeds: {missing}: No such file or directory (os error 2)\n"));
}
