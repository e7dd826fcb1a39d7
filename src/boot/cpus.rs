//! Which CPUs the shards run on.
//!
//! Decides: `"1-7,9"` names CPUs; without a list the shards get every CPU that the process may use. Shard i is
//! pinned to the i-th of them; more shards than CPUs share them in turn.
//! Leaves to others: queues of the network card and their CPUs.

use core_affinity::CoreId;

/// The CPUs of `list`, or all that the process may use when it is empty; an error names what is wrong.
pub fn choose(list: &str) -> Result<Vec<CoreId>, String> {
    let allowed = core_affinity::get_core_ids().unwrap_or_default();
    if list.is_empty() {
        return Ok(allowed);
    }
    let mut chosen = Vec::new();
    for number in parse(list)? {
        let cpu = allowed.iter().find(|cpu| cpu.id == number);
        chosen.push(*cpu.ok_or_else(|| {
            let given: Vec<String> = allowed.iter().map(|cpu| cpu.id.to_string()).collect();
            format!("CPU {number} is not given to this process; it may use {}", given.join(","))
        })?);
    }
    Ok(chosen)
}

/// The numbers of a list such as `"1-7,9"`, in order, each once.
pub fn parse(list: &str) -> Result<Vec<usize>, String> {
    let mut numbers = Vec::new();
    for part in list.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let number = |text: &str| text.trim().parse::<usize>().ok().filter(|number| *number < CPUS_MAX);
        let (Some(first), Some(last)) = (number(first), number(last)) else {
            return Err(format!("\"{part}\" is no CPU and no range of CPUs such as 1-7"));
        };
        if first > last {
            return Err(format!("\"{part}\" runs backwards"));
        }
        numbers.extend(first..=last);
    }
    numbers.sort_unstable();
    numbers.dedup();
    Ok(numbers)
}

/// The CPU of a shard; `None` when nothing is known of CPUs.
pub fn of_shard(cpus: &[CoreId], shard: u16) -> Option<CoreId> {
    cpus.get(usize::from(shard) % cpus.len().max(1)).copied()
}

const CPUS_MAX: usize = 4_096;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read() {
        assert_eq!(parse("1-3,9,2"), Ok(vec![1, 2, 3, 9]));
        for bad in ["", "a", "3-1", "1-", "-2", "1,,2", "99999"] {
            assert!(parse(bad).is_err(), "{bad:?}");
        }
        assert!(choose("4095").unwrap_err().contains("not given"));
        assert!(!choose("").unwrap().is_empty());
    }
}
