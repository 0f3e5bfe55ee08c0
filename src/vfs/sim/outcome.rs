//! What becomes of the events that no sync covers, when the power fails.

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, Result};

/// How a crash treats what was not synced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Profile {
    /// Power failure under nothing but POSIX: any subset of the unsynced writes, lengths and names
    /// survives, each in part. Names of one directory entry survive in order, a rename within one
    /// directory is whole or not there, and a rename across two may leave both names.
    PosixHarshest,
    /// Power failure on ext4 with ordered data: names survive in order, as a prefix; a sync that
    /// covers a changed length or a new file commits every name before it, a directory sync all
    /// of them; a rename over another file takes the data of its file with it; a file grows with
    /// its data only. Overwrites are torn as elsewhere.
    Ext4Ordered,
    /// SIGKILL: all that reached the kernel survives, the last write perhaps in part. What was not
    /// synced stays unsynced: a power failure after it may still take it.
    ProcessKill,
}

impl Profile {
    /// Every profile.
    pub const ALL: [Self; 3] = [Self::PosixHarshest, Self::Ext4Ordered, Self::ProcessKill];

    /// Its name in reports and fixtures.
    pub fn name(self) -> &'static str {
        match self {
            Self::PosixHarshest => "posix",
            Self::Ext4Ordered => "ext4",
            Self::ProcessKill => "kill",
        }
    }
}

/// What became of one event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// It left no trace.
    Lost,
    /// It survived whole.
    Full,
    /// Some units of a write survived: bytes of one up to 512 long, sectors of a longer one; the
    /// number picks them. Of a rename across directories both names survived. Anything else
    /// survived whole.
    Torn(u32),
    /// The file grew, its new bytes are zeros, its old ones are as before. What does not grow a
    /// file was lost.
    Zeroed,
    /// So many bytes from the start of a write survived.
    Cut(u32),
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lost => write!(f, "L"),
            Self::Full => write!(f, "F"),
            Self::Torn(pick) => write!(f, "T{pick}"),
            Self::Zeroed => write!(f, "Z"),
            Self::Cut(bytes) => write!(f, "C{bytes}"),
        }
    }
}

impl FromStr for Outcome {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let refuse =
            || Error::invalid("parse", "outcome", format!("'{text}' is not L, F, Z, T1 or C1"));
        let number = |digits: &str| digits.parse::<u32>().map_err(|e| refuse().with_source(e));
        match text.split_at_checked(1) {
            Some(("L", "")) => Ok(Self::Lost),
            Some(("F", "")) => Ok(Self::Full),
            Some(("Z", "")) => Ok(Self::Zeroed),
            Some(("T", pick)) => number(pick).map(Self::Torn),
            Some(("C", bytes)) => number(bytes).map(Self::Cut),
            _ => Err(refuse()),
        }
    }
}

/// One crash: where in the log, under which profile, and what became of each pending event. Its
/// text form (`posix@17:F.L.T3`) is a fixture for ever.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Outcomes {
    /// The profile.
    pub profile: Profile,
    /// Events before the crash.
    pub cut: usize,
    /// One outcome for each event pending then, in order; those beyond the end are lost.
    pub pending: Vec<Outcome>,
}

impl fmt::Display for Outcomes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}:", self.profile.name(), self.cut)?;
        for (at, outcome) in self.pending.iter().enumerate() {
            let dot = if at == 0 { "" } else { "." };
            write!(f, "{dot}{outcome}")?;
        }
        Ok(())
    }
}

impl FromStr for Outcomes {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let refuse =
            || Error::invalid("parse", "outcomes", format!("'{text}' is not profile@cut:list"));
        let (profile, rest) = text.split_once('@').ok_or_else(refuse)?;
        let (cut, list) = rest.split_once(':').ok_or_else(refuse)?;
        let profile = Profile::ALL.into_iter().find(|p| p.name() == profile).ok_or_else(refuse)?;
        let cut = cut.parse().map_err(|_| refuse())?;
        let pending = list.split('.').filter(|part| !part.is_empty()).map(str::parse);
        Ok(Self { profile, cut, pending: pending.collect::<Result<_>>()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Do fixtures read back as what was written, and is other text refused?
    #[test]
    fn outcomes_round_trip_as_text() {
        for text in ["posix@17:F.L.T3.Z.C12", "kill@0:", "ext4@3:L"] {
            assert_eq!(text.parse::<Outcomes>().unwrap().to_string(), text);
        }
        for text in ["", "posix", "posix@x:F", "dos@1:F", "posix@1:Q", "posix@1:T", "posix@1:FF"] {
            assert!(text.parse::<Outcomes>().is_err(), "{text}");
        }
    }
}
