//! The CPUs on which the shards run.
//!
//! Decides: `"1-7,9"` names CPUs; without a list the shards get every CPU that the process may use. Shard i is pinned
//! to the i-th of them; if there are more shards than CPUs, they share them in turn.
//! Leaves to others: reading a list (`config`), so that a list that passed `check-config` is read the same way here;
//! queues of the network card and their CPUs.

use core_affinity::CoreId;

use ringcrawl_config::read_cpus;

/// The CPUs of `list`, or all that the process may use if it is empty; the error names what is wrong.
pub fn choose(list: &str) -> Result<Vec<CoreId>, String> {
    let allowed = core_affinity::get_core_ids().unwrap_or_default();
    let numbers = read_cpus(list)?;
    if numbers.is_empty() {
        return Ok(allowed);
    }
    let chosen = numbers.into_iter().map(|number| {
        let cpu = allowed.iter().find(|cpu| u32::try_from(cpu.id) == Ok(number));
        cpu.copied().ok_or_else(|| {
            let given: Vec<String> = allowed.iter().map(|cpu| cpu.id.to_string()).collect();
            format!("this process may not use CPU {number}; it may use {}", given.join(","))
        })
    });
    chosen.collect()
}

/// The CPU of a shard; `None` if the CPUs are unknown.
pub fn of_shard(cpus: &[CoreId], shard: u16) -> Option<CoreId> {
    cpus.get(usize::from(shard) % cpus.len().max(1)).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpus_are_those_of_this_process() {
        let all = choose("").expect("all of them");
        let first = all.first().expect("a CPU");
        assert_eq!(choose(&first.id.to_string()), Ok(vec![*first]));
        for unknown in ["4095", "8191"] {
            assert!(choose(unknown).is_err_and(|why| why.contains(&format!("may not use CPU {unknown};"))));
        }
    }

    /// The configuration and the start accept the same lists, apart from CPUs that this machine lacks.
    #[test]
    fn a_list_is_right_for_both_or_for_none() {
        for list in
            ["", "0", "0,0", "1-0", " 0", "0 ", "0-0", "0 - 0", "0,", ",", "+0", "4096", "5000", "8191", "8192", "a"]
        {
            let set = ringcrawl_config::Config::default().set("crawl.cpus", &format!("\"{list}\""));
            let chosen = choose(list);
            let is_list = chosen.as_ref().map_or_else(|why| why.contains("may not use"), |_| true);
            assert_eq!(set.is_ok(), is_list, "{list:?}: {set:?} {chosen:?}");
        }
    }
}
