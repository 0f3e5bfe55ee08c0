//! check: inspect without changing.
