//! storing: bytes, readers and files become objects under a preparation, before any name refers to them.
//!
//! ```text
//!   put ──[at most WHOLE_BYTES_MAX]──────────────▶ queue ─────┐
//!   put ──[longer]──▶ pieces, cut where the content says ─────┤
//!                     the list of them, once it is whole ─────┤
//!                                          [flush, soft cap]  ▼
//!   put ──[longer, and never cut]──▶ a sealed file ──▶ ONE transaction: objects, recipes, leases
//! ```
//!
//! - OBJ6: what is put is leased by the transaction that stores it; a crash before leaves nothing, one behind
//!   it leaves it to whoever goes on with the preparation.
//! - OBJ3: a recipe is written whole, in the transaction that leases it; until then leases keep the pieces.
//! - OBJ1: "stored already" is decided in that transaction, against bytes that were read and compared.
//! - OBJ4: a source is read, and nothing else.

mod alone;
mod cutter;
mod flush;
mod list;
mod options;
mod pieces;
mod preparation;
mod prepare;
mod put;
mod queue;
mod refer;
mod source;
mod told;

pub use list::PreparationView;
pub use options::{Compress, Pieces, PrepareOptions, PutOptions, Stored, WHOLE_BYTES_MAX};
pub use pieces::PIECES_MAX;
pub use preparation::{PUT_BYTES_MAX, PUT_OBJECTS_MAX, Preparation};
pub use prepare::PREPARATION_NAME_BYTES_MAX;
