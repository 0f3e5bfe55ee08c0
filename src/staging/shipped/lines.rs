//! The rows of JSON lines: lines that are not blank.

/// The rows in `text`, without the blanks around them.
pub(in crate::staging) fn rows_of(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii).filter(|line| !line.is_empty())
}

/// Counts the rows of a text that comes in pieces.
#[derive(Debug, Default)]
pub(super) struct Counter {
    rows: u64,
    /// The line at hand is not blank.
    has_begun: bool,
}

impl Counter {
    /// Takes the next piece.
    pub(super) fn push(&mut self, piece: &[u8]) {
        let mut lines = piece.split(|byte| *byte == b'\n').peekable();
        while let Some(line) = lines.next() {
            self.has_begun = self.has_begun || !line.trim_ascii().is_empty();
            if lines.peek().is_some() {
                self.end_line();
            }
        }
    }

    fn end_line(&mut self) {
        self.rows += u64::from(self.has_begun);
        self.has_begun = false;
    }

    /// All of them.
    pub(super) fn finish(mut self) -> u64 {
        self.end_line();
        self.rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Are rows the same however the text is cut, with blank lines, and with or without a last end?
    #[test]
    fn blank_lines_are_no_rows() {
        for (text, rows) in [
            ("", 0),
            ("\n \r\n\t\n", 0),
            ("1", 1),
            ("1\n", 1),
            ("{}\r\n\r\n [1]\n", 2),
            ("\n1\n\n2", 2),
        ] {
            assert_eq!(rows_of(text.as_bytes()).count(), rows, "{text:?}");
            for step in 1..=text.len().max(1) {
                let mut counter = Counter::default();
                text.as_bytes().chunks(step).for_each(|piece| counter.push(piece));
                assert_eq!(counter.finish(), rows as u64, "{text:?} by {step}");
            }
        }
    }
}
