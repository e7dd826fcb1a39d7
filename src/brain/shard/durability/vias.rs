//! Which pages linked to the waiting URLs, for the records of these.
//!
//! Decides: queues hold no extra byte for this. The URLs that a page links to get consecutive numbers, so its URL is
//! kept once for that run of numbers, apart from the queues. Runs lie one after another in chunks of [`CHUNK_BYTES`];
//! a chunk is freed when all URLs that it covers are done.
//! A run as bytes, with numbers as in `log`: the gap between its first number and the run before it, the number of
//! its URLs, length and text of the page.
//! Invariants: runs come in the order of numbers and do not overlap.
//! Limits: a sixteenth of what queues may hold. Beyond that the oldest chunks are dropped, and records of their URLs
//! name no page. The log names it for all.

use std::collections::VecDeque;

use crate::log::number;

/// The pages.
#[derive(Debug)]
pub(in crate::shard) struct Vias {
    chunks: VecDeque<Chunk>,
    /// The last run, which may grow.
    open: ViaRun,
    bytes: usize,
    bytes_max: usize,
}

/// URLs with consecutive numbers, and the page that links to them.
#[derive(Debug, Default)]
struct ViaRun {
    first: u64,
    count: u64,
    page: String,
}

#[derive(Debug, Default)]
struct Chunk {
    first: u64,
    /// The number after its last run.
    next: u64,
    /// URLs of its runs that are not done.
    left: u64,
    runs: Vec<u8>,
}

impl Vias {
    /// Empty, with room for `bytes_max` bytes; 0: nothing is kept.
    pub fn new(bytes_max: usize) -> Vias {
        Vias { chunks: VecDeque::new(), open: ViaRun::default(), bytes: 0, bytes_max }
    }

    /// The URL of this number, which is higher than all before, is linked to by `page`. Text that does not fit in a
    /// record is not kept, nor is anything that a log has out of order.
    pub fn note(&mut self, number: u64, page: &str) {
        let next = match self.open.count {
            0 => self.chunks.back().map_or(0, |chunk| chunk.next),
            count => self.open.first + count,
        };
        if self.bytes_max == 0 || number < next {
            return;
        }
        if self.open.count == 0 || self.open.page != page || number != next {
            if !page.bytes().all(|byte| byte.is_ascii_graphic()) {
                return;
            }
            self.close();
            self.open.first = number;
            self.open.page.push_str(page);
        }
        self.open.count += 1;
    }

    /// The page that links to the URL of this number.
    pub fn of(&self, number: u64) -> Option<&str> {
        if self.open.holds(number) {
            return Some(&self.open.page);
        }
        let page = self.chunks.get(self.chunk_of(number)?)?.page_of(number)?;
        str::from_utf8(page).ok()
    }

    /// The URL of this number is done: no further record of it follows.
    pub fn over(&mut self, number: u64) {
        if self.open.holds(number) {
            self.close();
        }
        let Some(chunk) = self.chunk_of(number).and_then(|at| self.chunks.get_mut(at)) else { return };
        if chunk.page_of(number).is_none() {
            return;
        }
        chunk.left -= 1;
        if chunk.left == 0 {
            self.bytes -= std::mem::take(&mut chunk.runs).len();
        }
        while self.chunks.front().is_some_and(|chunk| chunk.left == 0) {
            self.forget_first();
        }
    }

    /// Memory in use.
    pub fn ram_bytes(&self) -> u64 {
        self.bytes as u64
    }

    /// The chunk in which a run of this number would be.
    fn chunk_of(&self, number: u64) -> Option<usize> {
        self.chunks.partition_point(|chunk| chunk.first <= number).checked_sub(1)
    }

    /// The open run is complete; the next one begins empty.
    fn close(&mut self) {
        let mut run = std::mem::take(&mut self.open);
        if run.count > 0 {
            self.keep(&run);
        }
        run.count = 0;
        run.page.clear();
        self.open = run;
    }

    fn keep(&mut self, run: &ViaRun) {
        if self.chunks.back().is_none_or(|chunk| chunk.runs.len() >= CHUNK_BYTES || chunk.left == 0) {
            self.chunks.back_mut().into_iter().for_each(|chunk| chunk.runs.shrink_to_fit());
            self.chunks.push_back(Chunk { first: run.first, next: run.first, ..Chunk::default() });
            self.bytes += size_of::<Chunk>();
        }
        if let Some(chunk) = self.chunks.back_mut() {
            let before = chunk.runs.len();
            number::put(&mut chunk.runs, run.first - chunk.next);
            number::put(&mut chunk.runs, run.count);
            number::put(&mut chunk.runs, run.page.len() as u64);
            chunk.runs.extend_from_slice(run.page.as_bytes());
            (chunk.next, chunk.left) = (run.first + run.count, chunk.left + run.count);
            self.bytes += chunk.runs.len() - before;
        }
        while self.bytes > self.bytes_max && !self.chunks.is_empty() {
            self.forget_first();
        }
    }

    fn forget_first(&mut self) {
        if let Some(chunk) = self.chunks.pop_front() {
            self.bytes -= chunk.runs.len() + size_of::<Chunk>();
        }
    }
}

impl ViaRun {
    fn holds(&self, number: u64) -> bool {
        (self.first..self.first + self.count).contains(&number)
    }
}

impl Chunk {
    fn page_of(&self, number: u64) -> Option<&[u8]> {
        let (mut runs, mut next) = (&*self.runs, self.first);
        while !runs.is_empty() {
            let first = next + number::take(&mut runs)?;
            next = first + number::take(&mut runs)?;
            let length = number::take(&mut runs)?;
            let page = number::take_bytes(&mut runs, length)?;
            if number < next {
                return (number >= first).then_some(page);
            }
        }
        None
    }
}

/// Runs are searched from the front: a chunk has some thirty.
const CHUNK_BYTES: usize = 2_048;

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use ringcrawl_base::Rng;

    /// Runs of all lengths, with gaps, done in any order; each URL has the page that it was noted with until it is
    /// done.
    #[test]
    fn agrees_with_a_map() {
        let (mut rng, mut vias, mut twin) = (Rng::new(9), Vias::new(1 << 30), BTreeMap::new());
        let mut number = 0;
        for step in 0..20_000 {
            let page = format!("http://h{}.test/{step}", rng.below(100));
            for _ in 0..rng.below(6) {
                vias.note(number, &page);
                twin.insert(number, page.clone());
                number += 1;
            }
            number += rng.below(2);
            while twin.len() > 500 {
                let over = *twin.keys().nth(rng.index(twin.len())).expect("many");
                twin.remove(&over);
                vias.over(over);
            }
            let asked = rng.below(number + 1);
            if let Some(page) = twin.get(&asked) {
                assert_eq!(vias.of(asked), Some(&**page), "step {step}, URL {asked}");
            }
        }
        twin.iter().for_each(|(number, page)| assert_eq!(vias.of(*number), Some(&**page)));
        assert_eq!((vias.of(number + 1), vias.of(u64::MAX)), (None, None));
        twin.into_keys().for_each(|number| vias.over(number));
        assert!(vias.bytes < 3 * CHUNK_BYTES, "{} bytes are left of nothing", vias.bytes);
    }

    #[test]
    fn the_oldest_go_when_there_is_no_room() {
        let mut vias = Vias::new(20_000);
        for number in 0..10_000 {
            vias.note(number, &format!("http://a.test/{}", number / 2));
            assert!(vias.bytes <= 20_000);
        }
        assert_eq!((vias.of(0), vias.of(9_500)), (None, Some("http://a.test/4750")));
        let mut none = Vias::new(0);
        none.note(0, "http://a.test/");
        assert_eq!((none.of(0), none.ram_bytes()), (None, 0));
        vias.note(10_000, "http://a.test/\r\nvia: x");
        assert_eq!(vias.of(10_000), None);
        // A damaged log may repeat numbers.
        vias.note(9_500, "http://b.test/");
        assert_eq!(vias.of(9_500), Some("http://a.test/4750"));
    }

    /// Memory per waiting URL, where a page has six new links.
    #[test]
    fn a_waiting_url_takes_few_bytes_more() {
        let (mut rng, mut vias) = (Rng::new(5), Vias::new(1 << 30));
        for page in 0..10_000 {
            let page =
                format!("https://www.site-{}.example/articles/{page}-{:x}.html", rng.below(300), rng.below(1 << 32));
            let first = vias.open.first + vias.open.count;
            (0..6).for_each(|link| vias.note(first + link, &page));
        }
        let each = vias.bytes as f64 / 60_000.0;
        println!("{each:.1} bytes a URL");
        assert!(each < 11.0, "{each}");
    }
}
