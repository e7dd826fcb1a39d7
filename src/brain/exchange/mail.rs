//! A flag that says that a shard has mail, so that it need not check all of its rings.
//!
//! Invariants: a sender raises it after it has put its message into a ring, the reader lowers it before it checks. So
//! no ring holds a message while its reader finds the flag lowered (model-checked, `tests/model`).

use super::sync::{AtomicBool, Ordering};

/// The flag of one reader.
#[derive(Debug, Default)]
pub struct MailFlag(AtomicBool);

impl MailFlag {
    /// There is a message in one of the reader's rings.
    pub fn raise(&self) {
        // A store would do, but the model checker can only follow exchanges on both sides.
        self.0.swap(true, Ordering::AcqRel);
    }

    /// Whether the reader must check its rings, which it does now.
    pub fn lower(&self) -> bool {
        self.0.swap(false, Ordering::AcqRel)
    }
}
