//! What threads share in this room, by one name: the models (`tests/model`) put a model checker's in its place.

pub(super) use std::sync::Arc;
pub(super) use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
