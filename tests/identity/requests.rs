//! Requests as servers get them.

use std::io::Write as _;
use std::time::{SystemTime, UNIX_EPOCH};

use ringcrawl_base::TempFolder;
use ringcrawl_config::{Certificates, Config, PrivateAddresses};
use web_bot_auth::keyring::KeyRing;
use web_bot_auth::{SignatureAgentLink, WebBotAuthVerifier};

use super::{Message, keygen, keyring, settings};
use crate::rig::hands::{get, with_hands};
use crate::rig::program::run;
use crate::rig::servers::{last, noting_server, read_request, secure_server, server};

/// The hands' configuration, with its key read, and the keys that `ringcrawl identity` publishes for it.
fn signing(folder: &TempFolder, more: &str) -> (Config, KeyRing, String) {
    let (key, id) = keygen(folder, "key.pem");
    let text = settings(&key, more);
    let file = folder.file("config.toml", &text);
    run(&["identity", "-c", &file, "--out", &folder.at("public")]).expect(0);
    let directory = folder.path().join("public/.well-known/http-message-signatures-directory");
    let keys = keyring(&std::fs::read_to_string(directory).expect("a directory"));
    let mut config = Config::load(&file).unwrap_or_else(|errors| panic!("{errors:?}"));
    config.read_secrets().unwrap_or_else(|errors| panic!("{errors:?}"));
    config.fetch.private_addresses = PrivateAddresses::LoopbackOnly;
    config.fetch.in_flight_max = 16;
    config.tls.certificates = Certificates::Record;
    (config, keys, id)
}

/// The URL that Signature-Agent of a request has, when its signature is right for `authority`, and by the clock.
fn verified(request: &str, scheme: &str, authority: &str, keys: &KeyRing) -> Result<String, String> {
    let message = Message::request(request, scheme);
    assert_eq!(message.authority, authority);
    let verifier = WebBotAuthVerifier::parse(&message).map_err(|error| error.to_string())?;
    let details = verifier.get_parsed_label().base.parameters.details.clone();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs() as i64;
    let (created, expires) = (details.created.expect("created"), details.expires.expect("expires"));
    assert!((now - 60..=now).contains(&created), "{created} at {now}");
    assert_eq!((expires - created, details.tag.as_deref(), details.nonce), (3_600, Some("web-bot-auth"), None));
    let agents = verifier.get_signature_agents().clone();
    let [SignatureAgentLink::External(agent)] = agents.as_slice() else { panic!("{agents:?}") };
    verifier.verify(keys, None).map_err(|error| error.to_string())?;
    Ok(agent.clone())
}

#[test]
fn requests_are_signed_for_whom_they_ask() {
    for (form, agent, field) in [
        ("dictionary", "https://bot.example/.well-known/http-message-signatures-directory", "sig1=\"https://"),
        ("string", "https://bot.example", "\"https://"),
    ] {
        let folder = TempFolder::new("signed-requests");
        let (config, keys, id) = signing(&folder, &format!("identity.signature_agent_form = \"{form}\"\n"));
        let (plain, asked_plain) = noting_server(|_| String::new());
        let (addr, asked) = secure_server();
        with_hands(&config, |hands| async move {
            let mut signatures = Vec::new();
            for host in ["www.Example.test", "www.example.test", "other.test", "127.0.0.1"] {
                let exchange = get(&hands, &format!("https://{host}:{}/a?b", addr.port())).await.expect("exchange");
                let request = asked.lock().expect("asked").last().expect("a request").clone();
                let authority = format!("{}:{}", host.to_ascii_lowercase(), addr.port());
                assert_eq!(verified(&request, "https", &authority, &keys), Ok(agent.to_owned()));
                assert!(last(&asked, "Signature-Agent").is_some_and(|value| value.starts_with(field)));
                assert!(last(&asked, "Signature-Input").is_some_and(|value| value.contains(&id)));
                assert_eq!(last(&asked, "From").as_deref(), Some("bot@bot.example"));
                // It is stored as it was sent.
                let stored = String::from_utf8(exchange.request_bytes).expect("text");
                let signature = last(&asked, "Signature").expect("a signature");
                assert!(stored.contains(&format!("\r\nSignature: {signature}\r\n")), "{stored}");
                signatures.push(signature);
                // What was signed for one host says nothing at another, and nothing when it was changed.
                let moved = request.replace(&authority, "elsewhere.test");
                assert!(verified(&moved, "https", "elsewhere.test", &keys).is_err());
                let changed = request.replace("https://bot.example", "https://bad.example");
                assert!(verified(&changed, "https", &authority, &keys).is_err());
            }
            assert_eq!(signatures[0], signatures[1], "one for a host");
            signatures.dedup();
            assert_eq!(signatures.len(), 3, "another for another host");
            // In clear there is none.
            get(&hands, &format!("http://www.example.test:{}/", plain.port())).await.expect("exchange");
            assert_eq!(last(&asked_plain, "Signature"), None);
        });
    }
}

#[test]
fn in_clear_if_wanted_and_without_a_key_never() {
    let folder = TempFolder::new("signed-in-clear");
    let (mut config, keys, _) = signing(&folder, "identity.sign = \"all\"\nagent.from = \"off\"\n");
    let (addr, asked) = noting_server(|_| String::new());
    let url = format!("http://www.example.test:{}/", addr.port());
    let (noted, to) = (asked.clone(), url.clone());
    with_hands(&config, |hands| async move {
        get(&hands, &to).await.expect("exchange");
        let request = noted.lock().expect("asked").last().expect("a request").clone();
        assert!(verified(&request, "http", &format!("www.example.test:{}", addr.port()), &keys).is_ok());
        assert_eq!(last(&noted, "From"), None);
    });
    config.identity = ringcrawl_config::Identity::default();
    with_hands(&config, |hands| async move {
        get(&hands, &url).await.expect("exchange");
        assert!(["Signature", "Signature-Input", "Signature-Agent"].iter().all(|name| last(&asked, name).is_none()));
    });
}

#[test]
fn a_crawl_signs_what_it_follows_a_redirect_to() {
    let folder = TempFolder::new("signed-crawl");
    let (key, _) = keygen(&folder, "key.pem");
    let (second, asked_second) = noting_server(|_| String::new());
    let to = format!("http://b.test:{}/", second.port());
    // Whose pages lead to the other host.
    let (addr, _) = server(move |mut stream, _| {
        while let Some(request) = read_request(&mut stream) {
            let status = if request.contains("/robots.txt") { "404 Not Found" } else { "302 Found" };
            let answer = format!("HTTP/1.1 {status}\r\nLocation: {to}\r\nContent-Length: 0\r\n\r\n");
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    let more = "identity.sign = \"all\"\npoliteness.host_delay = \"0s\"\npoliteness.ip_delay = \"0s\"\ncrawl.shards = 1\n\
                fetch.private_addresses = \"loopback-only\"\n\
                [dns.hosts]\n\"a.test\" = [\"127.0.0.1\"]\n\"b.test\" = [\"127.0.0.1\"]\n";
    let config = folder.file("config.toml", &settings(&key, more));
    let seed = format!("http://a.test:{}/", addr.port());
    run(&["crawl", "--dir", &folder.at("crawl"), "-c", &config, &seed]).expect(0);
    run(&["identity", "-c", &config, "--out", &folder.at("public")]).expect(0);
    let directory = folder.path().join("public/.well-known/http-message-signatures-directory");
    let keys = keyring(&std::fs::read_to_string(directory).expect("a directory"));
    let asked = asked_second.lock().expect("asked");
    // Its robots.txt, too.
    assert!(asked.len() >= 2, "{asked:?}");
    for request in asked.iter() {
        let verified = verified(request, "http", &format!("b.test:{}", second.port()), &keys);
        assert!(verified.is_ok(), "{verified:?}: {request}");
    }
    // The crawl keeps where its key is, and no key.
    let pem = std::fs::read_to_string(&key).expect("a key");
    let secret = pem.lines().nth(1).expect("a line").as_bytes().to_vec();
    for (path, bytes) in folder.content("crawl") {
        assert!(memchr::memmem::find(&bytes.unwrap_or_default(), &secret).is_none(), "{}", path.display());
    }
}
