//! matrix: one run through everything a stage does, failed at each step in each way.
//!
//! ```text
//!   play ── append, flush, late batch, plan, convert, publish, hand off, retire, reclaim ──▶ log, facts
//!              │                                                                    │
//!        EIO, ENOSPC at every operation [faults]              kill, power cut at every event [cuts]
//!              └───────────────▶ judge: rows exactly once, next pass, nothing left ◀─┘
//!                                   ▲
//!                        mutants: the same, with a rule of the contract off
//! ```

mod cuts;
mod faults;
mod judge;
mod mutants;
mod play;
