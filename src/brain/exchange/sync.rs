//! The primitives that threads share in this module, under one name: the models (`tests/model`) replace them with a
//! model checker's.

pub(super) use std::sync::Arc;
pub(super) use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
