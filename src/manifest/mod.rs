//! manifest: the truth. Every fact is a row here, changed in transactions.
//!
//! ```text
//!   Manifest (open, birth, handle)    HEAD (head): witness of the last commits
//!     |-- read  -> Snapshot (read) ----------+
//!     |-- write -> Write (write, commit) ----+-- Reading: rows by type (row, key, rows, table)
//!     |              `- settle: the one routine that removes objects (apart, erase)
//!     |              `- pending: what a single file's own files wait to have carried (body)
//!     `-- redb, guarded (halt), on a file (backend) or on a copy in memory (copy, examine)
//!   Draft (draft): a new manifest at any path, from a Snapshot or row by row
//!
//!   meta ... owners -- claims -- journals --+
//!   recordings - streams - chunks ----------+-- edges --> objects -> inline | files
//!   checkpoints, leases --------------------+             digests, file_objects follow from them
//!   parameters, and parameter_order that follows from them
//! ```
//!
//! - The format is checked first; then whose it is, how new, and whether whole. Nothing is written
//!   to a file before that [`Manifest::open`].
//! - P3, G6: a row that names an object without a row is not written [`Write::put`].
//! - P4: what goes, goes in the transaction that took its last reference [`Write::settle`].
//! - P5: a transaction of an owner whose row does not stand changes nothing [`Manifest::write`].
//! - P8: after any error of redb or the disk the handle halts, and writes nothing more.
//! - P9: redb is called behind a guard; a panic in it is an error here.

mod apart;
mod backend;
mod birth;
mod body;
mod by_table;
mod changes;
mod commit;
mod copy;
mod draft;
mod erase;
mod examine;
mod halt;
mod handle;
mod head;
mod heal;
mod key;
mod newborn;
mod open;
mod pinned;
mod read;
mod refit;
mod row;
mod rows;
mod settle;
mod switch;
mod table;
mod turn;
mod write;

pub use apart::TakenApart;
pub use birth::Birth;
pub use body::{BodyDisk, Books, lock_file};
pub use by_table::edges_of_value;
pub use changes::{CHANGED_ROWS_DUE, ChangeLoad, RowKey};
pub use commit::Committed;
pub use draft::{Draft, Drafted, Pass, PassRow, row_value};
pub use handle::Manifest;
pub use head::{Witness, read_head, read_whole_head, replace_head, write_head, write_head_by};
pub use key::{CountersKey, EdgeKey, Key, ResourceKey, StoreKey};
pub use newborn::Newborn;
pub use open::{CheckIntegrity, FEATURES_READ, FEATURES_WRITE, FORMAT, Open};
pub use pinned::RecipePin;
pub use read::{Edge, Raw, Reading, Snapshot};
pub use row::{Row, from_value, to_value};
pub use rows::*;
pub use settle::{Settled, recipe_of};
pub use switch::{Compacted, lock_out, switch};
pub use table::Table;
pub use turn::{TURN_MILLIS_MAX, Waits};
pub use write::Write;
