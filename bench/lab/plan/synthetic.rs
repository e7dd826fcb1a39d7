//! The synthetic web as a graph, without a server and a crawl.
//!
//! Decides: only pages are vertices. A link to an address that redirects is a link to the page where the redirects
//! end. Links to anything but pages are counted and left out.
//! Leaves to others: which page links to which (`web`).

use super::builder::Builder;
use super::{GraphSettings, Memory, PageGraph, PlanError, StepProgress, Watch};
use ringcrawl_web::Model;

/// The graph of a finite web.
pub fn read(
    model: &Model,
    settings: GraphSettings,
    memory: &mut Memory,
    watch: Watch<'_>,
) -> Result<PageGraph, PlanError> {
    let mut builder = Builder::new(settings, memory);
    let sites = model.config().sites;
    for site in 0..sites {
        if site.is_multiple_of(sites.div_ceil(200)) {
            watch(StepProgress { what: "drawing links", done: u64::from(site), total: u64::from(sites) });
        }
        let mut failed = None;
        let mut outside = 0;
        model.each_link(site, &mut |from, to| {
            let Some(to) = to else {
                outside += 1;
                return;
            };
            let mut link = || {
                let (from, to) = (builder.page(from, None)?, builder.page(to, None)?);
                builder.link(from, to)
            };
            failed = failed.take().or_else(|| link().err());
        });
        builder.outside += outside;
        if let Some(error) = failed {
            return Err(error);
        }
    }
    builder.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::SiteKind;
    use ringcrawl_web::ModelConfig;

    #[test]
    fn every_page_is_there() {
        let model = Model::new(ModelConfig { sites: 20, pages: 700, ..ModelConfig::default() }).expect("a web");
        let settings = GraphSettings { key: SiteKind::Domain, url_bytes: 50 };
        let graph = read(&model, settings, &mut Memory::new(1 << 24), &mut |_| ()).expect("a graph");
        assert_eq!((graph.pages(), graph.sites(), graph.nameless()), (700, 20, 0));
        assert!(graph.links() > 700 && graph.counts().outside > 0);
    }
}
