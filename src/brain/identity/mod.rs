//! The crawler's identity, so that others can verify it: signed requests, and what is published about the crawler.
//!
//! Decides: requests are signed by Web Bot Auth (`signer`), a profile of HTTP Message Signatures (`message`), with
//! one key (`config::SigningKey`). The configuration yields everything that site owners and their programs want to
//! know (`publication`): a page (`page`), the same for programs (`card`), the public keys (`directory`), and how to
//! serve them (`snippets`).
//! Invariants: nothing here opens a file or reads a clock; no private key is published or shown.
//! Leaves to others: sending (`fetch`), writing files (`cli`), hosts that the operator keeps out of a crawl
//! (`scope`).

mod card;
mod directory;
mod message;
mod page;
mod publication;
mod signer;
mod snippets;
mod words;

pub use directory::LIFETIME as DIRECTORY_LIFETIME;
pub use publication::{PublishedFile, publish};
pub use signer::{SignatureFields, Signer, WELL_KNOWN};

/// The key of RFC 9421 appendix B.1.4, for its vectors.
#[cfg(test)]
fn printed_key() -> ringcrawl_config::SigningKey {
    use base64::Engine as _;
    let seed = base64::engine::general_purpose::URL_SAFE_NO_PAD.decode("n4Ni-HpISpVObnQMW0wOhCKROaIKqKtW_2ZYb2p9KcU");
    ringcrawl_config::SigningKey::from_seed(&seed.expect("base64url")).expect("a seed")
}
