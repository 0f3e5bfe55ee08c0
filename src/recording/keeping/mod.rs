//! keeping: recordings as a whole: how far each is, what is said of it, and when it goes.
//!
//! ```text
//!   status    running ──▶ complete, failed
//!   events    what happened meanwhile, each a row of its own
//!   remove    rows, name, events, parameters and claim in one transaction
//!      ├─◀ replace      the new one takes the name of the old one
//!      └─◀ retention    a plan first, then one after the other
//! ```
//!
//! - P4: a recording goes, or gives its name to another, in one transaction.
//! - A recording that is being written is neither removed nor replaced: its claim stands in the way.
//! - An event stays whatever becomes of the records that were there when it was made.

mod events;
mod remove;
mod replace;
mod retention;
mod status;

pub use events::{EVENT_BYTES_MAX, EVENT_KIND_BYTES_MAX, Event, EventValue, NOTE};
pub(super) use events::{Where, add_event, copy_events, events_from, list_events};
pub(super) use remove::{Expected, forget, remove, remove_rows};
#[cfg(feature = "interop")]
pub(super) use replace::REPLACES;
pub(super) use replace::replace;
pub use retention::{Applied, Retention, RetentionPlan, Stays, ToRetire};
pub(super) use status::{give_up, set_status, streams_of};
