//! What sites wish about their pages: who says noindex, and which uses are not wanted.
//!
//! Decides: how that is asked for on the command line. What is known of a page, and whether it is taken, is
//! [`ringcrawl_warc::selection`]'s to say.

use ringcrawl_base::preferences::Use;
use ringcrawl_ring as ring;
use ringcrawl_warc::selection::{Noindex, Selection};

/// Options of what lists or takes captures.
#[derive(clap::Args, Clone, PartialEq, Eq, Debug, Default)]
pub struct Wishes {
    /// Pages that say noindex, or whose unavailable_after has passed: omit, include, or only these.
    #[arg(long, value_name = "CHOICE", value_parser = noindex)]
    noindex: Option<Noindex>,
    /// Leave out pages that are not for these uses: ai-use, license, search, tdm, train-ai, separated by commas.
    #[arg(long, value_name = "USES", value_delimiter = ',', value_parser = one_use)]
    respect: Vec<Use>,
}

impl Wishes {
    /// Whether anything is asked for.
    pub fn is_set(&self) -> bool {
        *self != Wishes::default()
    }

    /// What is asked for, now; `by_default` where nothing is said about noindex.
    pub fn selection(&self, by_default: Noindex) -> Selection {
        let noindex = self.noindex.unwrap_or(by_default);
        Selection { noindex, respect: self.respect.clone(), now: ring::unix_now() }
    }
}

fn noindex(text: &str) -> Result<Noindex, String> {
    match text {
        "omit" => Ok(Noindex::Omit),
        "include" => Ok(Noindex::Include),
        "only" => Ok(Noindex::Only),
        _ => Err("expected omit, include or only".to_owned()),
    }
}

fn one_use(text: &str) -> Result<Use, String> {
    Use::of_label(text.trim()).ok_or_else(|| {
        let labels: Vec<&str> = Use::ALL.iter().map(|one| one.label()).collect();
        format!("expected one of {}", labels.join(", "))
    })
}
