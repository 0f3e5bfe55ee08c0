//! describing: what is said of a recording and of its streams before there is a record.
//!
//! ```text
//!   name            what they can be called
//!   axis            what iterations and times are called, and their units
//!   schema          the part of a schema that one stream records
//!   every           which observations a stream takes      overflow      a full queue
//!   chunk_limits    where its chunks end
//!   parameters ──▶ flatten ──▶ parameter    what a run was made with, and its place in the index
//!          all but schema and parameters ──▶ about: as their rows keep it
//!                                              └─▶ difference: two descriptions, in words
//! ```
//!
//! - Nothing here reads or writes a record. What is wrong with a description is an error, or the
//!   text of one, before anything is written.
//! - A parameter stands in its row and in the index, or in neither: they come, are copied and go in
//!   one transaction.

mod about;
mod axis;
mod chunk_limits;
mod difference;
mod every;
mod flatten;
mod name;
mod overflow;
mod parameter;
mod parameters;
mod schema;

pub(super) use about::{RecordingAbout, StreamAbout};
pub use axis::TimeAxis;
pub(super) use chunk_limits::ChunkLimits;
pub(super) use difference::{Settings, StreamSettings, check_same};
pub use every::Every;
pub(super) use every::{Due, Moment, Sampling};
pub use name::NAME_BYTES_MAX;
pub(super) use name::{check_name, check_recording_name};
pub use overflow::Overflow;
pub(super) use parameter::{
    KIND_BOOL, KIND_NUMBER, KIND_STRING, copy_parameters, index_parameters, remove_parameters,
};
pub use parameter::{PARAMETER_BYTES_MAX, Parameter};
pub(super) use parameters::Given;
pub(super) use schema::stream_schema;
