//! A graph as text: links, and what is known of pages and sites.
//!
//! Decides: three files, each plain or compressed.
//!
//! | file | line |
//! |---|---|
//! | links | `SOURCE<TAB>TARGET`, two numbers, or two URLs in every line |
//! | pages | `NUMBER<TAB>…<TAB>HOST<TAB>URL`; fields in between are skipped, and the URL may be empty |
//! | sites | the first page's number; a site extends to the next line's page |
//!
//! A page is a number that appears in the list of pages or in a link: missing numbers are not pages. Two numbers with
//! the same URL are one page. The list of sites takes precedence; without it, sites follow from hosts.
//! The links are read twice: the first pass counts them, so that their memory is requested once, before it is used.
//! Invariants: reading ends at the first invalid line, and the error gives its number.
//! Limits: numbers up to 4,294,967,293; memory for a table with as many entries as the highest number.

use std::path::Path;

use super::builder::Builder;
use super::{GraphSettings, Memory, PAGES_MAX, PageGraph, PlanError, StepProgress, Watch};
use ringcrawl_files::lines::Lines;
use ringcrawl_url::Url;

/// The files of a graph.
#[derive(Clone, Copy, Debug)]
pub struct EdgeFiles<'a> {
    /// Links.
    pub edges: &'a Path,
    /// Pages by number.
    pub nodes: Option<&'a Path>,
    /// Sites as ranges of numbers.
    pub sites: Option<&'a Path>,
}

/// Reads a graph.
pub fn read(
    files: &EdgeFiles<'_>,
    settings: GraphSettings,
    memory: &mut Memory,
    watch: Watch<'_>,
) -> Result<PageGraph, PlanError> {
    let mut builder = Builder::new(settings, memory);
    if !is_of_numbers(files.edges)? {
        if let Some(path) = files.nodes.or(files.sites) {
            let error = std::io::Error::other("a list of numbers is for links by number, and these are links of URLs");
            return Err(PlanError::of_file(path, error));
        }
        read_urls(files.edges, &mut builder, watch)?;
        return builder.finish();
    }
    let sites = files.sites.map(|path| Sites::read(path, builder.memory)).transpose()?;
    let mut numbers = Numbers { pages: Vec::new(), sites };
    if let Some(path) = files.nodes {
        read_nodes(path, &mut numbers, &mut builder, watch)?;
    }
    let mut lines = Lines::open(files.edges)?;
    let mut count = 0;
    while let Some(line) = lines.next()? {
        let (from, to) = pair(line, number).map_err(|why| lines.bad(why))?;
        numbers.note(from, &mut builder)?;
        numbers.note(to, &mut builder)?;
        count += 1;
        tell(&mut lines, "counting links", watch);
    }
    numbers.add_noted(&mut builder)?;
    builder.expect_links(count)?;
    let mut lines = Lines::open(files.edges)?;
    while let Some(line) = lines.next()? {
        let (from, to) = pair(line, number).map_err(|why| lines.bad(why))?;
        match (numbers.page(from), numbers.page(to)) {
            (Some(from), Some(to)) => builder.link(from, to)?,
            _ => return Err(lines.bad("a link that was not there when links were counted: the file changes").into()),
        }
        tell(&mut lines, "reading links", watch);
    }
    builder.finish()
}

/// Reports the progress of `lines` to `watch`, if it is worth reporting.
fn tell(lines: &mut Lines, what: &'static str, watch: Watch<'_>) {
    if let Some((done, total)) = lines.progress() {
        watch(StepProgress { what, done, total });
    }
}

/// Whether the first link consists of numbers.
fn is_of_numbers(edges: &Path) -> Result<bool, PlanError> {
    let mut lines = Lines::open(edges)?;
    let Some(line) = lines.next()? else { return Err(PlanError::NoLinks) };
    Ok(line.starts_with(|first: char| first.is_ascii_digit()))
}

fn read_urls(edges: &Path, builder: &mut Builder<'_>, watch: Watch<'_>) -> Result<(), PlanError> {
    let mut lines = Lines::open(edges)?;
    let mut count = 0;
    while lines.next()?.is_some() {
        count += 1;
        tell(&mut lines, "counting links", watch);
    }
    builder.expect_links(count)?;
    let mut lines = Lines::open(edges)?;
    while let Some(line) = lines.next()? {
        let (from, to) = pair(line, url).map_err(|why| lines.bad(why))?;
        let (from, to) = (builder.page(&from, None)?, builder.page(&to, None)?);
        builder.link(from, to)?;
        tell(&mut lines, "reading links", watch);
    }
    Ok(())
}

fn read_nodes(
    path: &Path,
    numbers: &mut Numbers,
    builder: &mut Builder<'_>,
    watch: Watch<'_>,
) -> Result<(), PlanError> {
    let mut lines = Lines::open(path)?;
    while let Some(line) = lines.next()? {
        let Node { number, host, url } = Node::parse(line).map_err(|why| lines.bad(why))?;
        if numbers.page(number).is_some() {
            return Err(lines.bad(format!("page {number} stands in an earlier line, too")).into());
        }
        let site = numbers.sites.as_ref().map(|sites| sites.of(number));
        let page = match &url {
            Some(url) => builder.page(url, site.as_deref())?,
            None => builder.nameless(number, host.as_ref().map(Url::host), site.as_deref())?,
        };
        numbers.set(number, page, builder)?;
        tell(&mut lines, "reading pages", watch);
    }
    Ok(())
}

/// A line of the list of pages.
struct Node {
    number: u32,
    /// A URL of its host.
    host: Option<Url>,
    url: Option<Url>,
}

impl Node {
    fn parse(line: &str) -> Result<Node, String> {
        let fields: Vec<&str> = line.split('\t').collect();
        let (Some(first), Some(last), true) = (fields.first(), fields.last(), fields.len() >= 3) else {
            return Err("expected NUMBER, HOST and URL with tabs between them".to_owned());
        };
        let host = fields.iter().rev().nth(1).filter(|host| !host.is_empty());
        let host = host.map(|host| {
            let of_host = Url::parse(&format!("http://{host}/")).ok();
            of_host.filter(|url| url.path_and_query() == "/").ok_or_else(|| format!("{host:?} is no host"))
        });
        let url = Some(*last).filter(|url| !url.is_empty()).map(url).transpose()?;
        Ok(Node { number: number(first)?, host: host.transpose()?, url })
    }
}

/// The two fields of a line.
fn pair<T>(line: &str, field: impl Fn(&str) -> Result<T, String>) -> Result<(T, T), String> {
    match line.split_once('\t') {
        Some((from, to)) if !to.contains('\t') => Ok((field(from)?, field(to)?)),
        _ => Err("expected SOURCE and TARGET with a tab between them".to_owned()),
    }
}

fn number(text: &str) -> Result<u32, String> {
    let digits = Some(text).filter(|text| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()));
    let number = digits.and_then(|digits| digits.parse::<u64>().ok()).filter(|number| *number < PAGES_MAX);
    number.map(|number| number as u32).ok_or_else(|| format!("{text:?} is no number from 0 to {}", PAGES_MAX - 1))
}

fn url(text: &str) -> Result<Url, String> {
    Url::parse(text).map_err(|error| format!("{text:?}: {error}"))
}

/// The page of each number.
struct Numbers {
    /// By number: the page, [`NONE`] or [`NOTED`].
    pages: Vec<u32>,
    sites: Option<Sites>,
}

/// A number that is not a page.
const NONE: u32 = u32::MAX;
/// A number that occurs in a link, and that becomes a page when all are known.
const NOTED: u32 = u32::MAX - 1;

impl Numbers {
    fn page(&self, number: u32) -> Option<u32> {
        self.pages.get(number as usize).copied().filter(|page| *page < NOTED)
    }

    fn set(&mut self, number: u32, page: u32, builder: &mut Builder<'_>) -> Result<(), PlanError> {
        *self.place(number, builder)? = page;
        Ok(())
    }

    fn note(&mut self, number: u32, builder: &mut Builder<'_>) -> Result<(), PlanError> {
        let place = self.place(number, builder)?;
        if *place == NONE {
            *place = NOTED;
        }
        Ok(())
    }

    fn place(&mut self, number: u32, builder: &mut Builder<'_>) -> Result<&mut u32, PlanError> {
        let index = number as usize;
        if index >= self.pages.len() {
            let needed = index + 1;
            if needed > self.pages.capacity() {
                // Reserves extra room, so that numbers that rise one by one do not ask for memory each time.
                let more = (needed + needed / 2 - self.pages.len()) as u64;
                builder.memory.grow(&mut self.pages, more, "numbers of pages")?;
            }
            self.pages.resize(needed, NONE);
        }
        self.pages.get_mut(index).ok_or(PlanError::TooManyPages)
    }

    /// Makes pages of the numbers that occur in links but not in the list of pages, in order.
    fn add_noted(&mut self, builder: &mut Builder<'_>) -> Result<(), PlanError> {
        for (number, place) in self.pages.iter_mut().enumerate().filter(|(_, place)| **place == NOTED) {
            let number = number as u32;
            let site = self.sites.as_ref().map(|sites| sites.of(number));
            *place = builder.nameless(number, None, site.as_deref())?;
        }
        Ok(())
    }
}

/// Sites as ranges of numbers.
struct Sites {
    /// The first number of each, ascending.
    starts: Vec<u32>,
}

impl Sites {
    fn read(path: &Path, memory: &mut Memory) -> Result<Sites, PlanError> {
        let (mut lines, mut starts) = (Lines::open(path)?, Vec::new());
        while let Some(line) = lines.next()? {
            let start = number(line).map_err(|why| lines.bad(why))?;
            if starts.last().is_some_and(|last| start <= *last) {
                return Err(lines.bad(format!("{start} does not come behind the site before")).into());
            }
            if starts.len() == starts.capacity() {
                let more = starts.len().max(1_024) as u64;
                memory.grow(&mut starts, more, "sites")?;
            }
            starts.push(start);
        }
        Ok(Sites { starts })
    }

    /// The name of a page's site: the number with which it begins. Numbers before the first site are in site 0.
    fn of(&self, number: u32) -> String {
        let behind = self.starts.partition_point(|start| *start <= number);
        let start = behind.checked_sub(1).and_then(|index| self.starts.get(index));
        start.copied().unwrap_or_default().to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::SiteKind;
    use ringcrawl_base::TempFolder;

    struct Files(TempFolder);

    impl Files {
        fn read(&self, edges: &str, nodes: Option<&str>, sites: Option<&str>) -> Result<PageGraph, String> {
            let path = |name: &str, text: &str| std::path::PathBuf::from(self.0.file(name, text));
            let edges = path("edges", edges);
            let [nodes, sites] =
                [("nodes", nodes), ("sites", sites)].map(|(name, text)| text.map(|text| path(name, text)));
            let files = EdgeFiles { edges: &edges, nodes: nodes.as_deref(), sites: sites.as_deref() };
            let settings = GraphSettings { key: SiteKind::Domain, url_bytes: 50 };
            read(&files, settings, &mut Memory::new(64 << 20), &mut |_| ()).map_err(|error| {
                let text = error.to_string();
                text.strip_prefix(&format!("{}/", self.0.path().display())).unwrap_or(&text).to_owned()
            })
        }
    }

    fn links(graph: &PageGraph) -> Vec<(&str, Vec<&str>)> {
        let named = |page| graph.targets_of(page).iter().map(|target| graph.name(*target)).collect();
        graph.all().map(|page| (graph.name(page), named(page))).collect()
    }

    #[test]
    fn numbers_with_holes_and_pages_without_urls() {
        let files = Files(TempFolder::new("numbers"));
        let nodes = "7\tx\ta.test\thttp://a.test/7\n3\tx\tb.test\t\n5\ta.test\thttp://A.test/5#x\n";
        let graph = files.read("7\t3\n7\t9\n9\t7\n5\t5\n3\t2\n7\t3\n", Some(nodes), None).expect("a graph");
        let expected = [
            ("http://a.test/7", vec!["3", "9"]),
            ("3", vec!["2"]),
            ("http://a.test/5", vec![]),
            ("2", vec![]),
            ("9", vec!["http://a.test/7"]),
        ];
        assert_eq!(links(&graph), expected);
        let sites: Vec<&str> = graph.all().map(|page| graph.site_name(graph.site_of(page))).collect();
        assert_eq!(sites, ["a.test", "b.test", "a.test", "2", "9"]);
        assert_eq!((graph.counts().self_links, graph.counts().repeated, graph.nameless()), (1, 1, 3));
        assert!(!graph.has_bytes());
    }

    #[test]
    fn two_numbers_of_one_url_are_one_page() {
        let files = Files(TempFolder::new("one-url"));
        let nodes = "0\ta.test\thttp://a.test/\n1\ta.test\thttp://a.test:80/#top\n2\ta.test\thttp://a.test/2\n";
        let graph = files.read("0\t2\n1\t2\n2\t1\n", Some(nodes), None).expect("a graph");
        assert_eq!(
            links(&graph),
            [("http://a.test/", vec!["http://a.test/2"]), ("http://a.test/2", vec!["http://a.test/"])]
        );
    }

    #[test]
    fn sites_as_runs() {
        let files = Files(TempFolder::new("runs"));
        let graph =
            files.read("0\t1\n1\t4\n4\t5\n6\t0\n", None, Some("# first page of each\n1\n4\n6\n")).expect("a graph");
        let sites: Vec<(&str, &str)> =
            graph.all().map(|page| (graph.name(page), graph.site_name(graph.site_of(page)))).collect();
        assert_eq!(sites, [("0", "0"), ("1", "1"), ("4", "4"), ("5", "4"), ("6", "6")]);
    }

    #[test]
    fn links_of_urls() {
        let files = Files(TempFolder::new("url-links"));
        let text =
            "http://a.test/\thttp://b.test/x\nhttp://b.test/x\thttp://A.test\nhttp://a.test/\thttp://b.test/x#y\n";
        let graph = files.read(text, None, None).expect("a graph");
        assert_eq!(
            links(&graph),
            [("http://a.test/", vec!["http://b.test/x"]), ("http://b.test/x", vec!["http://a.test/"])]
        );
        assert_eq!(graph.counts().repeated, 1);
        let refused = files.read(text, Some("0\ta\t\n"), None).expect_err("numbers for URLs");
        assert_eq!(refused, "nodes: a list of numbers is for links by number, and these are links of URLs");
    }

    #[test]
    fn bad_lines_are_named() {
        let files = Files(TempFolder::new("bad-graphs"));
        let good = "0\t1\n";
        for (edges, nodes, sites, words) in [
            ("", None, None, "no link leads"),
            ("# nothing\n\n", None, None, "no link leads"),
            ("3\t3\n", None, None, "no link leads"),
            ("0\t1\n1\n", None, None, "edges:2: expected SOURCE and TARGET"),
            ("0\t1\t2\n", None, None, "edges:1: expected SOURCE and TARGET"),
            ("0\t1\n#\n1\t-2\n", None, None, "edges:3: \"-2\" is no number"),
            ("0\t4294967294\n", None, None, "edges:1: \"4294967294\" is no number from 0 to 4294967293"),
            ("0\t4294967293\n", None, None, "numbers of pages: "),
            ("http://a.test/\tftp://b.test/\n", None, None, "edges:1: \"ftp://b.test/\": scheme is not"),
            ("http://a.test/\thttp://b.test/\n0\t1\n", None, None, "edges:2: \"0\": not a URL"),
            (good, Some("0\thttp://a.test/\n"), None, "nodes:1: expected NUMBER, HOST and URL"),
            (good, Some("0\ta.test\thttp://a.test/\n0\ta.test\t\n"), None, "nodes:2: page 0 stands in an earlier"),
            (good, Some("0\ta/b\t\n"), None, "nodes:1: \"a/b\" is no host"),
            (good, Some("x\ta\t\n"), None, "nodes:1: \"x\" is no number"),
            (good, None, Some("0\n5\n5\n"), "sites:3: 5 does not come behind"),
            (good, None, Some("zero\n"), "sites:1: \"zero\" is no number"),
        ] {
            let error = files.read(edges, nodes, sites).expect_err(words);
            assert!(error.starts_with(words), "{error:?}, not {words:?}");
        }
    }
}
