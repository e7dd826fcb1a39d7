//! What sites wish for their pages: which pages say noindex, and which uses are not wanted.
//!
//! Decides: the command-line options for that. [`ringcrawl_warc::selection`] decides what is known of a page, and
//! whether it is taken.

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
    /// Whether any option is set.
    pub fn is_set(&self) -> bool {
        *self != Wishes::default()
    }

    /// The selection at the present time; `by_default` applies if no option mentions noindex.
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
