//! Two owners that write into one store, their steps interleaved by a seed, also inside each other:
//! where one announces a step of a protocol, the other may do a whole operation, or be its death.
//!
//! ```text
//!   seed --- [play_shared] ---> log of disk events, model after each change
//!                                   |
//!               cut at many events [cut_shared] ---> image --- [check] ---> a finding
//! ```

mod acts;
mod check;
mod hunt;
mod model;
mod world;

pub use check::cut_shared;
pub use hunt::{OF_SHARED, SharedCase, hunt_shared, replay_shared, shared_slice};
pub use world::{SharedRun, play_shared};
