//! Passwords: whichever way one is given, it reaches its server and is found nowhere else.
//!
//! Decides: each test plants passwords that stand nowhere by themselves, and looks for them, as they are and as Basic
//! authentication sends them, in everything that a crawl says, shows and writes.

use std::collections::BTreeSet;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ringcrawl_base::TempFolder;
use ringcrawl_config::Config;
use ringcrawl_http as http;

use crate::rig::program::{Process, RINGCRAWL, run};
use crate::rig::servers::noting_server;

/// The web's three logins, and the proxy's in each of the three ways: in the configuration, in a file, as a credential.
const LOGINS: [&str; 3] = ["inline:planted-w1", "filed:planted-w2", "credited:planted-w3"];
const PROXY_LOGINS: [&str; 3] = ["proxied:planted-p1", "proxied:planted-p2", "proxied:planted-p3"];

/// Panics if a secret that was planted stands in `bytes`.
#[track_caller]
fn hides(what: &str, bytes: &[u8]) {
    let coded = LOGINS.iter().chain(&PROXY_LOGINS).map(|login| http::basic(login).replace("Basic ", ""));
    for secret in coded.chain(["planted-".to_owned()]) {
        let found = memchr::memmem::find(bytes, secret.as_bytes());
        assert!(found.is_none(), "{secret} stands in {what}:\n{}", String::from_utf8_lossy(bytes));
    }
}

/// Panics if one stands in a file of the crawl, in what is packed there, or in a name.
#[track_caller]
fn hides_in_files(folder: &TempFolder, crawl: &str) {
    let mut segments = 0;
    for (path, bytes) in folder.content(crawl) {
        let name = path.display().to_string();
        hides("a name", name.as_bytes());
        let bytes = bytes.unwrap_or_default();
        hides(&name, &bytes);
        if name.contains(".warc.zst") {
            // The last frame may be torn, after a panic.
            let mut text = Vec::new();
            let mut decoder = zstd::Decoder::new(bytes.as_slice()).expect("zstd");
            let _ = std::io::copy(&mut decoder, &mut text);
            assert!(memchr::memmem::find(&text, b"\r\nAuthorization: (removed)\r\n").is_some(), "{name}");
            assert!(memchr::memmem::find(&text, b"\r\nProxy-Authorization: (removed)\r\n").is_some(), "{name}");
            hides(&name, &text);
            segments += 1;
        }
    }
    assert!(segments > 0, "nothing was stored");
}

#[test]
fn passwords_are_shown_and_kept_nowhere() {
    let folder = TempFolder::new("secrets");
    folder.file("login", LOGINS[1]);
    folder.file("c", LOGINS[2]);
    for (number, proxy_login) in PROXY_LOGINS.iter().enumerate() {
        // One server is the proxy and, behind it, all hosts. It answers when the command line has been looked at.
        let is_looked_at = Arc::new(AtomicBool::new(false));
        let may_answer = Arc::clone(&is_looked_at);
        let (addr, asked) = noting_server(move |_| {
            while !may_answer.load(Ordering::SeqCst) {
                std::thread::sleep(std::time::Duration::from_millis(2));
            }
            String::new()
        });
        let proxy = format!("http://{proxy_login}@{addr}");
        let url = match number {
            0 => format!("{proxy:?}"),
            1 => format!("{{ file = {:?} }}", folder.file("proxy", &proxy)),
            _ => {
                folder.file("p", &proxy);
                "{ credential = \"p\" }".to_owned()
            }
        };
        let text = format!(
            "version = 1\npoliteness.host_delay = \"0s\"\npoliteness.site_delay = \"0s\"\npoliteness.ip_delay = \"0s\"\ncrawl.shards = 1\n\
             agent.name = \"test\"\nagent.url = \"http://a.test/\"\nagent.email = \"a@a.test\"\n\
             fetch.private_addresses = \"loopback-only\"\n[proxy]\nurl = {url}\n\
             [http]\nauth = {{ \"http://a.test\" = {:?}, \"http://b.test\" = {{ file = {:?} }}, \
             \"http://c.test\" = {{ credential = \"c\" }} }}\n\
             [dns.hosts]\n\"a.test\" = [\"127.0.0.1\"]\n\"b.test\" = [\"127.0.0.1\"]\n\"c.test\" = [\"127.0.0.1\"]\n",
            LOGINS[0],
            folder.at("login")
        );
        let config = folder.file(&format!("config-{number}.toml"), &text);
        let crawl = format!("crawl-{number}");
        let dir = folder.at(&crawl);
        let seeds = ["http://a.test/", "http://b.test/", "http://c.test/"];
        let arguments = [&["crawl", "--dir", &dir, "-c", &config, "--json", "-"][..], &seeds].concat();
        let as_service = |arguments: &[&str], planted: &str| {
            let mut command = Command::new(RINGCRAWL);
            command.args(arguments).env("CREDENTIALS_DIRECTORY", folder.path()).env("RINGCRAWL_PANIC", planted);
            Process::start(&mut command)
        };
        // First to its end, or into a panic; then, with what was kept, on to its end.
        let mut process = as_service(&arguments, if number == 0 { "fetch:6" } else { "" });
        process.wait_until("a request", || !asked.lock().expect("asked").is_empty());
        let command_line = std::fs::read(format!("/proc/{}/cmdline", process.id())).expect("a process");
        assert!(memchr::memmem::find(&command_line, b"crawl").is_some());
        hides("the command line", &command_line);
        is_looked_at.store(true, Ordering::SeqCst);
        let first = process.end().expect(i32::from(number == 0));
        let again = as_service(&arguments, "").end().expect(0);
        let printed = as_service(&["check-config", "--print", &config], "").end().expect(0);
        assert!(printed.out.contains("\"http://a.test\" = { left_out = true }"), "{}", printed.out);
        let stripped = folder.file("printed.toml", &printed.out);
        let refused =
            as_service(&["crawl", "--dir", &folder.at("other"), "-c", &stripped, seeds[0]], "").end().expect(2);
        let refused = refused.says(&["this file was written without the secret"]);
        for ended in [&first, &again, &printed, &refused] {
            hides("standard output", &ended.out_bytes);
            hides("standard error", ended.err.as_bytes());
        }
        hides_in_files(&folder, &crawl);
        // They were of use.
        let asked = asked.lock().expect("asked");
        let seen: BTreeSet<&str> = asked.iter().flat_map(|request| request.split("\r\n")).collect();
        for login in LOGINS {
            let field = format!("Authorization: {}", http::basic(login));
            assert!(seen.contains(field.as_str()), "{login} was not sent: {seen:#?}");
        }
        assert!(seen.contains(format!("Proxy-Authorization: {}", http::basic(proxy_login)).as_str()));
    }
}

#[test]
fn a_command_line_is_no_place_for_a_password() {
    let folder = TempFolder::new("secrets-set");
    let before = folder.content("");
    for set in [
        format!("proxy.url=http://{}@127.0.0.1:9", PROXY_LOGINS[0]),
        format!("http.auth={{ \"http://a.test\" = {:?} }}", LOGINS[0]),
    ] {
        let key = &set[..9];
        for arguments in [
            vec!["crawl", "http://127.0.0.1:8/", "--dir", &folder.at("crawl"), "--set", &set],
            vec!["check-config", "/dev/null", "--set", &set],
        ] {
            let ended = run(&arguments).expect(2).says(&["--set:", key, "(ps)", "{ file = ", "LoadCredential="]);
            hides("standard error", ended.err.as_bytes());
            assert!(folder.content("") == before, "{arguments:?} changed files");
        }
    }
}

#[test]
fn mistakes_beside_a_password_do_not_show_it() {
    let text = format!(
        "[proxy]\nurl = \"socks5://{}@127.0.0.1:1080\"\n[http]\nauth = {{ \"http://a.test\" = \"{}\" }}\n",
        PROXY_LOGINS[0], LOGINS[0]
    );
    let shown = |text: &str| match Config::parse(text, "test") {
        Ok(config) => format!("{config:?}{}", config.to_toml()),
        Err(errors) => errors.iter().map(|error| format!("{error}\n{error:?}\n")).collect(),
    };
    for at in 0..text.len() {
        hides("what a file cut short leads to", shown(&text[..at]).as_bytes());
        for slip in ["", "\"", "=", "[", "\n"] {
            hides("what a slip leads to", shown(&[&text[..at], slip, &text[at + 1..]].concat()).as_bytes());
        }
    }
}
