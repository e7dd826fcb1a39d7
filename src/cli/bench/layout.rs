//! Assigns CPUs to the shards and to the web that they crawl.
//!
//! Decides: the web has CPUs of its own; otherwise one core would pay for every page twice. By default the web gets
//! the last CPU and the shards get all others. A warning is printed if there is only one CPU or the lists overlap.

use ringcrawl_crawler::boot;

/// CPUs by use.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Layout {
    /// CPUs of the shards, by shard; if there are more shards than CPUs, they share them in turn.
    pub shards: Vec<usize>,
    /// CPUs of the web, one thread each.
    pub web: Vec<usize>,
    /// How many shards there are.
    pub count: u32,
}

impl Layout {
    /// Builds the layout from the arguments (empty: not given); an error names the argument.
    pub fn new(shards: Option<u32>, cpus: &str, web_cpus: &str) -> Result<Layout, String> {
        let numbers = |argument: &str, list: &str| {
            let chosen = boot::choose_cpus(list).map_err(|why| format!("{argument}: {why}"))?;
            Ok::<_, String>(chosen.iter().map(|cpu| cpu.id).collect::<Vec<_>>())
        };
        Layout::of(
            shards,
            &numbers("--cpus", "")?,
            &numbers("--cpus", cpus)?,
            &numbers("--web-cpus", web_cpus)?,
            [!cpus.is_empty(), !web_cpus.is_empty()],
        )
    }

    fn of(
        shards: Option<u32>,
        all: &[usize],
        cpus: &[usize],
        web_cpus: &[usize],
        [cpus_given, web_given]: [bool; 2],
    ) -> Result<Layout, String> {
        let without = |list: &[usize], taken: &[usize]| {
            let left: Vec<usize> = list.iter().copied().filter(|cpu| !taken.contains(cpu)).collect();
            if left.is_empty() { list.to_vec() } else { left }
        };
        let web = match (web_given, cpus_given) {
            (true, _) => web_cpus.to_vec(),
            (false, true) => without(all, cpus).last().copied().into_iter().collect(),
            (false, false) => all.last().copied().into_iter().collect(),
        };
        let own = if cpus_given { cpus.to_vec() } else { without(all, &web) };
        if own.is_empty() || web.is_empty() {
            return Err("--cpus: this process may use none of these CPUs".to_owned());
        }
        let count = shards.unwrap_or(own.len() as u32);
        // A CPU without a shard is not one of the shards' CPUs.
        let used = own.into_iter().take(count as usize).collect();
        Ok(Layout { shards: used, web, count })
    }

    /// Whether some CPU serves both.
    pub fn is_shared(&self) -> bool {
        self.web.iter().any(|cpu| self.shards.contains(cpu))
    }

    /// Formats a list as the arguments take it: `0-2,5`.
    pub fn list(cpus: &[usize]) -> String {
        cpus.iter().map(usize::to_string).collect::<Vec<_>>().join(",")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_web_gets_the_last_cpu_unless_told() {
        let of = |shards, all: &[usize], cpus: &[usize], web: &[usize]| {
            let layout = Layout::of(shards, all, cpus, web, [!cpus.is_empty(), !web.is_empty()]).expect("a layout");
            (layout.is_shared(), layout.shards, layout.web, layout.count)
        };
        let all = [0, 1, 2, 3];
        assert_eq!(of(None, &all, &[], &[]), (false, vec![0, 1, 2], vec![3], 3));
        assert_eq!(of(Some(1), &all, &[], &[]), (false, vec![0], vec![3], 1));
        assert_eq!(of(Some(8), &[0, 1], &[], &[]), (false, vec![0], vec![1], 8));
        assert_eq!(of(None, &all, &[], &[0, 1]), (false, vec![2, 3], vec![0, 1], 2));
        assert_eq!(of(None, &all, &[3], &[]), (false, vec![3], vec![2], 1));
        assert_eq!(of(None, &all, &[0, 1, 2, 3], &[]), (true, vec![0, 1, 2, 3], vec![3], 4));
        assert_eq!(of(None, &[0], &[], &[]), (true, vec![0], vec![0], 1));
        assert!(Layout::of(None, &[], &[], &[], [false, false]).is_err());
        assert!(Layout::new(None, "4095", "").expect_err("no such CPU").starts_with("--cpus: "));
    }
}
