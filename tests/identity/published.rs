//! What `ringcrawl identity` writes.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use base64::Engine as _;
use ringcrawl_base::TempFolder;
use web_bot_auth::message_signatures::MessageVerifier;

use super::{Message, keygen, keyring, settings};
use crate::rig::program::{Process, run};
use crate::rig::skip;

const DIRECTORY: &str = "/.well-known/http-message-signatures-directory";

/// A port that was free a moment ago.
fn free_port() -> u16 {
    TcpListener::bind(("127.0.0.1", 0)).and_then(|listener| listener.local_addr()).expect("a port").port()
}

/// Head and body of an answer; the codings are those that are offered.
fn get(addr: SocketAddr, path: &str, codings: &str) -> Option<(String, String)> {
    let mut stream = TcpStream::connect(addr).ok()?;
    let request =
        format!("GET {path} HTTP/1.1\r\nHost: bot.example\r\nAccept-Encoding: {codings}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).ok()?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).ok()?;
    let answer = String::from_utf8(answer).ok()?;
    answer.split_once("\r\n\r\n").map(|(head, body)| (head.to_owned(), body.to_owned()))
}

/// A program, also where root's programs are.
fn program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(["/usr/sbin".into()]);
    folders.map(|folder| folder.join(name)).find(|program| program.is_file())
}

/// Two keys, published in a folder: the folder's path, and the names of the keys.
fn published(folder: &TempFolder) -> (String, [String; 2]) {
    let ((key, id), (next, next_id)) = (keygen(folder, "key.pem"), keygen(folder, "next.pem"));
    let config = folder.file("config.toml", &settings(&key, ""));
    let out = folder.at("public");
    run(&["identity", "-c", &config, "--out", &out, "--also-key", &next]).expect(0);
    (out, [id, next_id])
}

/// Everything is served, and each key of the directory signs its response.
#[track_caller]
fn is_right(addr: SocketAddr, ids: &[String; 2]) {
    for (path, media_type, word) in [
        ("/about/", "text/html; charset=utf-8", "Disallow: /"),
        ("/about/bot.json", "application/json", "\"client_id\": \"https://bot.example/about/bot.json\""),
        ("/about/addresses.json", "application/json", "192.0.2.0/24"),
    ] {
        let (head, body) = get(addr, path, "identity").expect("an answer");
        assert!(head.starts_with("HTTP/1.1 200 ") && body.contains(word), "{path}: {head}\n{body}");
        let message = Message { head, authority: String::new(), is_response: true };
        assert_eq!(message.values("content-type"), [media_type]);
    }
    // The rest of the folder is nobody's.
    for path in ["/nginx.conf", "/about/nginx.conf", "/about/Caddyfile", "/about/index.html.new"] {
        let (head, _) = get(addr, path, "identity").expect("an answer");
        assert!(!head.starts_with("HTTP/1.1 200 ") || head.contains("Content-Length: 0"), "{path}: {head}");
    }
    let (head, body) = get(addr, DIRECTORY, "gzip, zstd, br").expect("an answer");
    let message = Message { head, authority: "bot.example".to_owned(), is_response: true };
    assert_eq!(message.values("content-type"), ["application/http-message-signatures-directory+json"]);
    let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, body.as_bytes());
    let digest = base64::engine::general_purpose::STANDARD.encode(digest);
    assert_eq!(message.values("content-digest"), [format!("sha-256=:{digest}:")]);
    let verify = |message: &Message, id: &str| {
        let verifier = MessageVerifier::parse(message, |(_, inner)| {
            let is = |name: &str, value: &str| {
                let found = inner.params.get(name).and_then(|value| value.as_string());
                found.is_some_and(|found| found.as_str() == value)
            };
            is("tag", "http-message-signatures-directory") && is("keyid", id)
        });
        verifier
            .and_then(|verifier| verifier.verify(&keyring(&body), None))
            .map(drop)
            .map_err(|error| error.to_string())
    };
    for id in ids {
        assert_eq!(verify(&message, id), Ok(()));
        // Served by another host, or with other keys, it is no proof.
        let moved = Message { head: message.head.clone(), authority: "bad.example".to_owned(), is_response: true };
        assert!(verify(&moved, id).is_err());
        let other = message.head.replace("sha-256=:", "sha-256=:a");
        assert!(verify(&Message { head: other, authority: message.authority.clone(), is_response: true }, id).is_err());
    }
}

/// Waits until the server answers, and judges what it serves.
#[track_caller]
fn judge(mut server: Process, port: u16, ids: &[String; 2]) {
    let addr = SocketAddr::from(([127, 0, 0, 1], port));
    server.wait_with_patience(Duration::from_secs(30), "an answer", || get(addr, "/", "identity").is_some());
    is_right(addr, ids);
}

#[test]
fn nginx_serves_it() {
    let Some(nginx) = program("nginx") else { return skip("nginx is not installed") };
    let folder = TempFolder::new("identity-nginx");
    let (out, ids) = published(&folder);
    std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o755)).expect("a mode");
    let port = free_port();
    let at = folder.path().display();
    let paths = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map(|of| format!("{of}_temp_path {at}/{of};"));
    let conf = format!(
        "daemon off;\npid {at}/nginx.pid;\nerror_log stderr;\nevents {{ }}\nhttp {{\naccess_log off;\n{}\ngzip on;\ngzip_types *;\n\
         gzip_min_length 1;\nserver {{\nlisten 127.0.0.1:{port};\nserver_name bot.example;\nroot /nonexistent;\n\
         include {out}/nginx.conf;\n}}\n}}\n",
        paths.join("\n")
    );
    let conf = folder.file("server.conf", &conf);
    judge(Process::start(Command::new(nginx).args(["-e", "stderr", "-p", &folder.at(""), "-c", &conf])), port, &ids);
}

#[test]
fn caddy_serves_it() {
    let Some(caddy) = program("caddy") else { return skip("caddy is not installed") };
    let folder = TempFolder::new("identity-caddy");
    let (out, ids) = published(&folder);
    let port = free_port();
    let conf = format!(
        "{{\n\tadmin off\n\tauto_https off\n}}\nhttp://bot.example:{port} {{\n\tbind 127.0.0.1\n\tencode zstd gzip {{\n\t\tminimum_length 1\n\
         \t\tmatch header Content-Type *\n\t}}\n\timport {out}/Caddyfile\n}}\n"
    );
    let conf = folder.file("Caddyfile", &conf);
    let mut command = Command::new(caddy);
    command.args(["run", "--adapter", "caddyfile", "--config", &conf]);
    command.env("HOME", folder.path()).env("XDG_DATA_HOME", folder.path()).env("XDG_CONFIG_HOME", folder.path());
    judge(Process::start(&mut command), port, &ids);
}

#[test]
fn files_are_everybody_s_and_keys_their_owner_s() {
    let folder = TempFolder::new("identity-files");
    let (out, ids) = published(&folder);
    let mode = |path: &str| std::fs::metadata(folder.path().join(path)).expect("a file").permissions().mode() & 0o777;
    for name in ["index.html", "bot.json", "nginx.conf", "signature-headers.txt", &DIRECTORY[1..]] {
        assert_eq!(mode(&format!("public/{name}")), 0o644, "{name}");
    }
    assert_eq!((mode("public/.well-known"), mode("key.pem")), (0o755, 0o600));
    // Again: no file is left over, and the keys are the same.
    let config = folder.at("config.toml");
    let said = run(&["identity", "-c", &config, "--out", &out]).expect(0).out;
    assert!(said.contains(&ids[0]) && said.contains("14 days"), "{said}");
    let directory = std::fs::read_to_string(format!("{out}{DIRECTORY}")).expect("a directory");
    assert!(directory.contains(&ids[0]) && !directory.contains(&ids[1]), "{directory}");
    assert!(folder.content("public").keys().all(|path| !path.display().to_string().ends_with(".new")));
    // No key is overwritten.
    let before = std::fs::read(folder.at("key.pem")).expect("a key");
    run(&["identity", "keygen", &folder.at("key.pem")]).expect(2).says(&["it exists"]);
    assert_eq!(std::fs::read(folder.at("key.pem")).expect("a key"), before);
    run(&["identity", "keygen", &folder.at("none/key.pem")]).expect(1).says(&["No such file"]);
}

#[test]
fn mistakes_are_named() {
    let folder = TempFolder::new("identity-mistakes");
    let out = folder.at("public");
    run(&["identity", "--out", &out]).expect(2).says(&["agent.name is not set", "identity.operator is not set"]);
    run(&["identity"]).expect(2).says(&["--out"]);
    let (key, _) = keygen(&folder, "key.pem");
    let config = folder.file("config.toml", &settings(&key, ""));
    std::fs::set_permissions(&key, PermissionsExt::from_mode(0o644)).expect("a mode");
    let places = ["config.toml:8: identity.signing_key", "mode 0644", "chmod 600"];
    run(&["identity", "-c", &config, "--out", &out]).expect(2).says(&places);
    run(&["check-config", &config]).expect(2).says(&places);
    std::fs::set_permissions(&key, PermissionsExt::from_mode(0o600)).expect("a mode");
    let rsa = folder.file("rsa.pem", "-----BEGIN RSA PRIVATE KEY-----\nAAAA\n-----END RSA PRIVATE KEY-----\n");
    std::fs::set_permissions(&rsa, PermissionsExt::from_mode(0o600)).expect("a mode");
    run(&["identity", "-c", &config, "--out", &out, "--also-key", &rsa]).expect(2).says(&["--also-key", "an RSA key"]);
    let config = folder.file("rsa.toml", &settings(&rsa, ""));
    run(&["crawl", "--dir", &folder.at("crawl"), "-c", &config, "http://a.test/"]).expect(2).says(&["an RSA key"]);
    assert!(!std::path::Path::new(&out).exists() && !folder.path().join("crawl").exists());
}
