//! backup: a whole store at one commit, made beside its writer, onto nothing or onto an earlier one.
//!
//! ```text
//!   target: refuse, lock ---> barrier ---> hold ---> snapshot, ends of journals (bounds)
//!     rows into a draft in tmp/ (rows) ---> files that are missing, journals (copy)
//!     ---> read everything back as a reader of the new manifest would (verify, staged)
//!     ---> switch: the draft gets the manifest's name ---> HEAD ---> what is named no more goes
//! ```
//!
//! A store that is one file is copied whole into another one each time (one_file).
//!
//! - Until the switch the target is the earlier backup, or no store; from it on, the new one. What
//!   is added before is named by no row of the earlier one, and what is replaced begins with the
//!   same bytes.
//! - P1: everything acknowledged before the call is in it, unsealed records with their journals.
//! - P3: every file that its rows name is durable, and was read back, before the switch.
//! - The copy has no living owner and no claim: it is what a clean close at that commit leaves.

mod bounds;
mod copy;
mod one_file;
mod rows;
mod run;
mod staged;
mod target;
mod verify;

pub use run::{Backup, BackupOptions, BackupProgress};
