//! What programs read about the crawler: the Signature Agent Card and the list of addresses.
//!
//! Decides: members are those of draft-meunier-webbotauth-registry-04 (OAuth client metadata with a `web_bot_auth`
//! object) and of draft-illyes-webbotauth-jafar, and only those with a known value. Both are drafts: readers ignore
//! unknown members.
//! Invariants: `client_id` is exactly the URL where the card must be served, as its readers check.
//! Leaves to others: what people read (`page`).

use serde_json::{Value, json};

use super::publication::Facts;
use super::words;
use ringcrawl_base::time::UnixTime;
use ringcrawl_config::read_network;

/// bot.json.
pub(super) fn card(facts: &Facts<'_>) -> String {
    let (agent, politeness) = (&facts.config.agent, &facts.config.politeness);
    let unless = words::agreed(politeness)
        .map_or(String::new(), |agreed| format!(", unless agreed with a host's owner: {agreed}"));
    let mut about = json!({
        "expected-user-agent": agent.user_agent(),
        "rfc9309-product-token": agent.name,
        "rfc9309-compliance": true,
        "trigger": "crawler",
        "purpose": facts.config.identity.purpose,
        "rate-control": "429 or 503 with Retry-After, and Crawl-delay in robots.txt",
        "rate-expectation": format!(
            "at most one request at a time to a host, and {} between two{unless}",
            words::duration(politeness.least_host_delay())
        ),
        "known-urls": ["/robots.txt"],
    });
    let mut card = json!({});
    let secure = |url: &str| url.starts_with("https://").then(|| Value::from(url));
    set(&mut about, "ips_uri", facts.has_addresses().then(|| secure(&facts.places.addresses)).flatten());
    set(&mut card, "client_id", secure(&facts.places.card));
    set(&mut card, "client_name", Some(Value::from(agent.name.as_str())));
    set(&mut card, "client_uri", Some(Value::from(agent.url.as_str())));
    set(&mut card, "contacts", Some(json!([format!("mailto:{}", agent.email)])));
    set(&mut card, "jwks_uri", facts.directory.as_ref().map(|place| Value::from(place.url.as_str())));
    set(&mut card, "web_bot_auth", Some(about));
    pretty(&card)
}

/// addresses.json.
pub(super) fn addresses(facts: &Facts<'_>, now: UnixTime) -> String {
    let networks = facts.config.identity.addresses.iter().filter_map(|text| read_network(text));
    let prefixes: Vec<Value> = networks
        .map(|(first, length)| {
            let name = if first.is_ipv4() { "ipv4Prefix" } else { "ipv6Prefix" };
            json!({ name: format!("{first}/{length}") })
        })
        .collect();
    pretty(&json!({ "creationTime": words::second(now), "prefixes": prefixes }))
}

fn set(object: &mut Value, name: &str, value: Option<Value>) {
    if let (Some(object), Some(value)) = (object.as_object_mut(), value) {
        object.insert(name.to_owned(), value);
    }
}

fn pretty(value: &Value) -> String {
    format!("{value:#}\n")
}
