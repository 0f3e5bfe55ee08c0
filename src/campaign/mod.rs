//! campaign: crash images of whole stores, and a checker that knows what each may hold.
//!
//! ```text
//!   history --- [play] ---> log of disk events, model after each step
//!                                |
//!            cut at every event, every choice of survivors [slice]
//!                                |
//!                              image --- `check` ---> a finding, or the log of its recovery
//!                                                          |
//!                                  cut again, inside the recovery [nested]
//! ```
//!
//! - A history is a line of text, a crash is a line of text, and together they are a fixture for
//!   ever `case`.
//! - The checker knows nothing of how the store works: it compares what a store shows with a model
//!   of what was acknowledged `model`, and asks the rows whether their bytes are there `check`.
//! - What salvage brings back of an image without its manifest is the state of a commit, and what it
//!   lists besides `salvaged`.
//! - A rule that no mutant breaks is no rule: each protection is switched off in turn `mutants`.

mod case;
mod check;
mod content;
mod copies;
mod fault;
mod finding;
mod history;
mod liar;
mod model;
mod mutants;
mod nested;
mod packing;
mod play;
mod report;
mod salvaged;
mod shapes;
mod shared;
mod slice;
mod space;
mod tamper;
mod tamper_copy;
mod tamper_file;
mod trace;

pub use case::{Case, replay};
pub use check::{Checked, Judge, check_image};
pub use content::{Content, SavedState};
pub use fault::{Faults, fault_sweep};
pub use finding::{Finding, Rule};
pub use history::{History, Limited, Shape, pairs, random, singles};
pub use model::{Bytes, Frame, Model, Stream, Survivors};
pub use mutants::{Mutant, catch, is_caught, protections_in_use, same_again, whole_trace};
pub use nested::Depth;
pub use packing::{cut_packing, packings};
pub use play::{Run, play};
pub use report::{Tally, outcome_name};
pub use salvaged::{Salvages, salvage_all, salvage_history};
pub use shared::{
    OF_SHARED, SharedCase, SharedRun, cut_shared, hunt_shared, play_shared, replay_shared,
    shared_slice,
};
pub use slice::{Budget, cut_history};
pub use space::{crash_loops, crash_loops_in};
pub use tamper::{Tamper, tamper_all};
pub use trace::check_trace;
