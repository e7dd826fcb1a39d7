//! Stub.
use crate::time::Duration;
#[derive(Debug)]
pub struct Rules(bool, Vec<String>, Option<Duration>);
pub enum Meaning {
    Parse,
    AllowAll,
    Unreachable,
}
pub fn meaning(status: u16) -> Meaning {
    match status {
        200..300 => Meaning::Parse,
        429 => Meaning::Unreachable,
        400..500 => Meaning::AllowAll,
        _ => Meaning::Unreachable,
    }
}
impl Rules {
    pub fn parse(body: &[u8], _agent: &str, _max: usize) -> Rules {
        let t = String::from_utf8_lossy(body).into_owned();
        Rules(
            true,
            t.lines().filter_map(|l| l.strip_prefix("Disallow: ")).map(str::to_owned).collect(),
            t.lines()
                .find_map(|l| l.strip_prefix("Crawl-delay: "))
                .and_then(|s| s.parse().ok())
                .map(Duration::from_secs),
        )
    }
    pub fn allow_all() -> Rules {
        Rules(true, vec![], None)
    }
    pub fn disallow_all() -> Rules {
        Rules(false, vec![], None)
    }
    pub fn allows(&self, path: &str) -> bool {
        self.0 && !self.1.iter().any(|p| path.starts_with(p.as_str()))
    }
    pub fn crawl_delay(&self) -> Option<Duration> {
        self.2
    }
}
