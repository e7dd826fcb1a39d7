//! What a signature costs a request: the request with its fields, when the host's signature is remembered and when not.
//!
//! Floor: the same request without them. A page costs some 100 µs, of which signatures are to take a hundredth.
//! Checked before: a remembered signature is the one that was made, and a signed request has its three fields.

use std::os::unix::fs::PermissionsExt;

use divan::{Bencher, black_box};
use ringcrawl_base::time::UnixTime;
use ringcrawl_brain::identity::Signer;
use ringcrawl_config::Config;
use ringcrawl_config::SigningKey;
use ringcrawl_http::{Method, Request};
use ringcrawl_url::Url;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Hosts whose signatures are remembered.
const HOSTS: usize = 10_000;
const NOW: UnixTime = UnixTime::from_micros(1_800_000_000_000_000);

fn main() {
    let (mut signer, urls) = (signer(64 << 20), urls());
    let all: Vec<Vec<u8>> = urls.iter().map(|url| signed(&mut signer, url)).collect();
    for (url, made) in urls.iter().zip(&all) {
        assert_eq!(&signed(&mut signer, url), made);
        for name in ["Signature", "Signature-Input", "Signature-Agent"] {
            assert!(memchr::memmem::find(made, format!("\r\n{name}: ").as_bytes()).is_some(), "{name}");
        }
    }
    divan::main();
}

fn signer(ram_bytes_max: u64) -> Signer {
    let pem = SigningKey::generate().and_then(|key| key.to_pem()).expect("a key");
    let file = std::env::temp_dir().join(format!("ringcrawl-bench-key-{}-{ram_bytes_max}", std::process::id()));
    std::fs::write(&file, pem).expect("a file");
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o600)).expect("a mode");
    let mut config = Config::default();
    for (key, value) in [
        ("identity.signing_key", format!("{{ file = {file:?} }}")),
        ("identity.directory_url", "https://bot.example/.well-known/http-message-signatures-directory".to_owned()),
        ("identity.ram_bytes_max", format!("{ram_bytes_max}B")),
    ] {
        config.set(key, &value).expect(key);
    }
    config.read_secrets().expect("a key");
    let _ = std::fs::remove_file(&file);
    Signer::new(&config.identity).expect("a signer")
}

fn urls() -> Vec<Url> {
    (0..HOSTS).map(|host| Url::parse(&format!("https://www.host-{host}.example/a/b.html")).expect("valid")).collect()
}

fn request(url: &Url, extra: &[(&str, &[u8])]) -> Vec<u8> {
    let user_agent = "examplebot/0.1.0 (+https://bot.example/; bot@bot.example)";
    Request { method: Method::Get, url, user_agent, from: "bot@bot.example", extra, last: false }.to_bytes()
}

fn signed(signer: &mut Signer, url: &Url) -> Vec<u8> {
    let fields = signer.fields(url, NOW).expect("signed");
    request(
        url,
        &[
            ("Signature-Agent", fields.agent.as_bytes()),
            ("Signature-Input", fields.input.as_bytes()),
            ("Signature", fields.signature.as_bytes()),
        ],
    )
}

/// Each of many hosts in turn.
fn each(bencher: Bencher<'_, '_>, mut work: impl FnMut(&Url) -> Vec<u8>) {
    let urls = urls();
    let mut next = urls.iter().cycle();
    bencher.bench_local(|| next.next().map(|url| black_box(work(black_box(url)))));
}

#[divan::bench]
fn floor(bencher: Bencher<'_, '_>) {
    each(bencher, |url| request(url, &[]));
}

#[divan::bench]
fn remembered(bencher: Bencher<'_, '_>) {
    let mut signer = signer(64 << 20);
    urls().iter().for_each(|url| drop(signed(&mut signer, url)));
    each(bencher, |url| signed(&mut signer, url));
}

#[divan::bench]
fn made(bencher: Bencher<'_, '_>) {
    let mut signer = signer(0);
    each(bencher, |url| signed(&mut signer, url));
}
