//! What an outside system has to be able to do, so that an output gets there once.

use crate::error::Result;
use crate::staging::{OutputReader, OutputView};

/// An output as a target sees it before anything is done.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Offer {
    /// The name of its stage.
    pub stage: String,
    /// The output.
    pub output: OutputView,
}

/// An outside system that outputs are handed to.
///
/// The stage commits what [`intent`](Self::intent) says before it calls anything else, and calls all
/// else with exactly those bytes, in this process or in another one after a crash. It holds the claim on
/// the output meanwhile, however long that takes, so that no two of these calls for one output run at
/// once. A panic in any of them is an error of that hand-off and of no other.
pub trait Target {
    /// Names the outside system. A hand-off that was prepared under another name is left alone. At
    /// most 4 KiB.
    fn name(&self) -> String;

    /// What is to be there, with all that it takes to put it there, to find it and to take it away. It
    /// may look at the outside system, and changes nothing in it. At most 64 KiB.
    ///
    /// # Errors
    /// Whatever keeps it from saying so: nothing was prepared then.
    fn intent(&self, offer: &Offer) -> Result<Vec<u8>>;

    /// Takes away what earlier attempts left half done, but not what is there whole. Attempts are
    /// counted from 1; this is before number `attempt`.
    ///
    /// # Errors
    /// Whatever keeps it from doing so: the hand-off stays prepared.
    fn tidy(&self, intent: &[u8], attempt: u32) -> Result<()> {
        let _ = (intent, attempt);
        Ok(())
    }

    /// Puts the bytes there, and returns when they are there for good. What is there already and is
    /// something else stays as it is, and is an error.
    ///
    /// # Errors
    /// Whatever keeps it from doing so: the hand-off stays prepared, and can be tried again.
    fn put(&self, intent: &[u8], attempt: u32, bytes: &mut OutputReader) -> Result<()>;

    /// Reads back what is there: what shows that it is what was intended, and there for good; `None` if
    /// it is not there, or if something else is. That a name exists shows nothing. At
    /// most 64 KiB.
    ///
    /// # Errors
    /// Whatever keeps it from knowing.
    fn evidence(&self, intent: &[u8]) -> Result<Option<Vec<u8>>>;

    /// Takes away what was put there, for good; what is something else, or was put there by somebody
    /// else, stays as it is. What earlier attempts left half done is still there, and taken away behind
    /// this by [`tidy`](Self::tidy).
    ///
    /// # Errors
    /// Whatever keeps it from doing so: the hand-off stays prepared.
    fn remove(&self, intent: &[u8]) -> Result<()>;
}
