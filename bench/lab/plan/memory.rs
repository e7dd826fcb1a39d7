//! Bounds the memory of a plan.
//!
//! Decides: every list whose length depends on the input is requested here before it is allocated. A graph that does
//! not fit is refused with the amount it needs, before the system kills the process.
//! Limits: the memory of METIS itself is estimated (`weighted`).

use super::PlanError;

/// The memory allowed, and how much of it is taken.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Memory {
    max: u64,
    taken: u64,
}

impl Memory {
    /// Allows `max` bytes in all.
    pub fn new(max: u64) -> Memory {
        Memory { max, taken: 0 }
    }

    /// Takes `bytes` for `what`.
    pub fn take(&mut self, bytes: u64, what: &'static str) -> Result<(), PlanError> {
        let left = self.max - self.taken;
        if bytes > left {
            return Err(PlanError::Memory { what, needed: bytes, left, max: self.max });
        }
        self.taken += bytes;
        Ok(())
    }

    /// Frees `bytes`.
    pub fn give_back(&mut self, bytes: u64) {
        self.taken = self.taken.saturating_sub(bytes);
    }

    /// Frees the memory of a list.
    pub fn release<T>(&mut self, list: Vec<T>) {
        self.give_back((list.capacity() * size_of::<T>()) as u64);
    }

    /// An empty list with room for `count` items.
    pub fn list<T>(&mut self, count: u64, what: &'static str) -> Result<Vec<T>, PlanError> {
        let mut list = Vec::new();
        self.grow(&mut list, count, what)?;
        Ok(list)
    }

    /// A list of `count` times `item`.
    pub fn filled<T: Clone>(&mut self, count: usize, item: T, what: &'static str) -> Result<Vec<T>, PlanError> {
        let mut list = self.list(count as u64, what)?;
        list.resize(count, item);
        Ok(list)
    }

    /// Room for `count` more items in `list`.
    pub fn grow<T>(&mut self, list: &mut Vec<T>, count: u64, what: &'static str) -> Result<(), PlanError> {
        let needed = count.saturating_mul(size_of::<T>() as u64);
        self.take(needed, what)?;
        let reserved = usize::try_from(count).is_ok_and(|count| list.try_reserve_exact(count).is_ok());
        if reserved { Ok(()) } else { Err(PlanError::Memory { what, needed, left: 0, max: self.max }) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_refused_in_words() {
        let mut memory = Memory::new(100);
        let list: Vec<u64> = memory.list(10, "links").expect("80 bytes");
        assert!(list.capacity() >= 10);
        let refused = memory.list::<u64>(3, "pages").expect_err("20 bytes are left").to_string();
        assert_eq!(refused, "pages: 24 bytes of memory are needed, and 20 of 100 are left (--ram-max)");
        memory.release(list);
        assert_eq!(memory.filled(12, 7u64, "pages").expect("96 bytes"), [7; 12]);
        let mut all = Memory::new(u64::MAX);
        assert!(all.list::<u64>(u64::MAX, "links").is_err());
    }
}
