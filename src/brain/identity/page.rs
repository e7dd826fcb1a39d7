//! The bot page: for a site's owner who found the crawler in a log.
//!
//! Decides: one document without scripts, images or external references, so that it can be read everywhere and leaks
//! its readers to no third party. It says what the configuration does, in the order of the questions: who, why, how
//! fast, how to stop it, how to be sure that it is us. The lines to stop it can be copied as they are.
//! Invariants: text of the configuration is escaped.

use std::fmt::Write as _;

use super::publication::Facts;
use super::signer::signature_agent;
use super::words::{agreed, duration, html, second};
use ringcrawl_base::time::UnixTime;
use ringcrawl_config::{Politeness, SentFrom, SignatureAgentForm, SignedRequests};

pub(super) fn page(facts: &Facts<'_>, now: UnixTime) -> String {
    let (agent, identity) = (&facts.config.agent, &facts.config.identity);
    let (politeness, robots) = (&facts.config.politeness, &facts.config.robots);
    let [name, email, operator, purpose, user_agent] =
        [&agent.name, &agent.email, &identity.operator, &identity.purpose, &agent.user_agent()].map(|text| html(text));
    let from = match agent.from {
        SentFrom::On => format!(" and <code>From: {email}</code>"),
        SentFrom::Off => String::new(),
    };
    let (crawl_delay, retry_after) = (duration(politeness.crawl_delay_max), duration(politeness.retry_after_max));
    let rates = rates(politeness);
    let (robots_ttl, addresses, signatures) = (duration(robots.ttl), addresses(facts), signatures(facts));
    let written = second(now);
    format!(
        "<!DOCTYPE html>
<html lang=\"en\">
<head>
<meta charset=\"utf-8\">
<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">
<title>{name}: who is crawling, and how to stop it</title>
<style>
{STYLE}</style>
</head>
<body>
<main>
<h1>{name}</h1>
<p>{name} is a web crawler, run by {operator} (see <a href=\"#contact\">whom to ask</a>). You probably came here from a log of your web server.</p>

<h2 id=\"why\">What it is for</h2>
<p>{purpose}</p>

<h2 id=\"contact\">Whom to ask</h2>
<p>Write to <a href=\"mailto:{email}\">{email}</a>. Please name the host, and a time and a line of your log if you can.</p>

<h2 id=\"requests\">What its requests look like</h2>
<p>Each has <code>User-Agent: {user_agent}</code>{from}.</p>
<p>The first request to a host is for its <code>/robots.txt</code>.</p>

<h2 id=\"rates\">How fast it is</h2>
<ul>
{rates}<li><code>Crawl-delay</code> in robots.txt is obeyed, up to {crawl_delay}.</li>
<li>After status 429 or 503 it waits as long as <code>Retry-After</code> says, up to {retry_after}.</li>
</ul>

<h2 id=\"stop\">How to stop it</h2>
<p>These lines in your <code>/robots.txt</code> keep {name} away from the whole host:</p>
<pre>User-agent: {name}
Disallow: /
</pre>
<p>These keep it away from a part, and make it slower in the rest:</p>
<pre>User-agent: {name}
Disallow: /private/
Crawl-delay: 10
</pre>
<p>Both by RFC 9309, also where other lines are for all crawlers. It looks for changes every {robots_ttl}.</p>
<p>If that is not possible, or not fast enough, write to
<a href=\"mailto:{email}?subject=Please%20stop%20crawling\">{email}</a> and name the hosts. You need not say why.</p>

<h2 id=\"verify\">How to be sure that it is {name}</h2>
<p>Anybody can send this User-Agent.</p>
{addresses}{signatures}
<p>Programs find all this in <a href=\"bot.json\">bot.json</a>.</p>
</main>
<footer><p>Written {written} from the crawler's settings.</p></footer>
</body>
</html>
"
    )
}

/// The rates for each host and address; a delay of zero is left out.
fn rates(politeness: &Politeness) -> String {
    let mut text = "<li>A host gets one request at a time".to_owned();
    let delay = politeness.least_host_delay();
    if !delay.is_zero() {
        let _ = write!(text, ", and at least {} pass from the end of one to the start of the next", duration(delay));
    }
    if let Some(agreed) = agreed(politeness) {
        let _ = write!(text, ", unless something else is agreed with its owner: {agreed}");
    }
    text.push_str(".</li>\n");
    if !politeness.ip_delay.is_zero() {
        let delay = duration(politeness.ip_delay);
        let _ = writeln!(
            text,
            "<li>So does an IP address, however many hosts it has, with at least {delay} between two.</li>"
        );
    }
    text
}

/// Dark on light and light on dark, as the reader prefers; lines of a readable length.
const STYLE: &str = "\
:root { color-scheme: light dark; }
body { font: 1.1rem/1.5 sans-serif; margin: 0 auto; max-width: 42rem; padding: 1rem; }
pre, code { font-family: monospace; overflow-wrap: anywhere; }
pre { border: 1px solid; overflow-x: auto; padding: 0.75rem; }
";

fn addresses(facts: &Facts<'_>) -> String {
    if !facts.has_addresses() {
        return "<p>It has no fixed addresses.</p>\n".to_owned();
    }
    let mut text =
        "<h3 id=\"addresses\">By address</h3>\n<p>It comes from these addresses alone, which programs find in \
                    <a href=\"addresses.json\">addresses.json</a>:</p>\n<ul>\n"
            .to_owned();
    for network in &facts.config.identity.addresses {
        let _ = writeln!(text, "<li><code>{}</code></li>", html(network));
    }
    text.push_str("</ul>\n");
    text
}

fn signatures(facts: &Facts<'_>) -> String {
    let Some(directory) = &facts.directory else { return String::new() };
    let (url, identity) = (html(&directory.url), &facts.config.identity);
    let which = match identity.sign {
        SignedRequests::Https => "Each request over https",
        SignedRequests::All => "Each request",
    };
    let lifetime = duration(identity.signature_lifetime);
    let form = identity.signature_agent_form;
    let agent = format!("\"{}\"", signature_agent(&identity.directory_url, form));
    let agent = html(&match form {
        SignatureAgentForm::Dictionary => format!("sig1={agent}"),
        SignatureAgentForm::String => agent,
    });
    let mut text = format!(
        "<h3 id=\"signature\">By signature</h3>
<p>{which} has the fields <code>Signature-Agent</code>, <code>Signature-Input</code> and <code>Signature</code>: Web Bot Auth, a
profile of HTTP Message Signatures (RFC 9421). The signature is of the host that is asked
(<code>@authority</code>) and of <code>Signature-Agent</code>, with Ed25519, has the tag <code>web-bot-auth</code>, and holds
for {lifetime}. One is used for many requests. <code>Signature-Agent</code> is <code>{agent}</code>.</p>
<p>The public keys are at <a href=\"{url}\">{url}</a>. Their <code>keyid</code>:</p>
<ul>
"
    );
    for id in &facts.key_ids {
        let _ = writeln!(text, "<li><code>{id}</code></li>");
    }
    text.push_str("</ul>\n");
    text
}
