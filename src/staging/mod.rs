//! staging: batches are acknowledged under a key, grouped, converted, and published exactly once.
//!
//! ```text
//!   append ──▶ intake stream (journal) ──[flush, seal]──▶ parts of groups ──[plan: claim]──▶ convert
//!                                                                                    │
//!   hand-off ◀── outputs ◀──[ONE transaction: output in, consumed parts out, claims released]
//! ```
