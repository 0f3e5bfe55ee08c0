//! Many rows of one table go at once: runs of them that stand next to each other are taken out page by
//! page, and the rest one by one. What is looked at follows the rows that go, never those that stay.

use redb::{ReadableTable, Table as RedbTable};
use std::ops::{Bound, ControlFlow};

use super::halt::Halt;
use super::read::scan_in;
use super::table::Table;
use super::write::Write;
use crate::error::{Error, Result};

type Bytes = &'static [u8];

/// Rows that stay between two that go, at most, for both to be of one run.
const GAP_ROWS_MAX: usize = 4;

impl Write<'_> {
    /// Takes away the values at `keys`, which are in order, and from which nothing else follows. A key
    /// without a value is passed over.
    pub(super) fn erase_all<K: AsRef<[u8]>>(&self, table: Table, keys: &[K]) -> Result<()> {
        if keys.is_empty() {
            return Ok(());
        }
        self.touch_all(table, keys);
        let cell = self.table(table)?;
        let Ok(mut open) = cell.try_borrow_mut() else {
            let cause = "a row cannot be changed from inside a scan of its table";
            return Err(Error::invalid("write", table.name(), cause));
        };
        let mut left = keys;
        while !left.is_empty() {
            let (run, rest) = left.split_at(run_of(self.halt(), &*open, left)?);
            self.halt().guard("write", || erase_run(&mut open, run))?;
            left = rest;
        }
        Ok(())
    }
}

/// How many of `keys` are of the run that begins with the first; at least that one.
fn run_of<K: AsRef<[u8]>>(
    halt: &Halt,
    table: &impl ReadableTable<Bytes, Bytes>,
    keys: &[K],
) -> Result<usize> {
    let Some(first) = keys.first() else { return Ok(0) };
    let range = (Bound::Included(first.as_ref().to_vec()), Bound::Unbounded);
    let (mut going, mut staying, mut is_cut) = (keys.iter().enumerate().peekable(), 0, false);
    scan_in(halt, table, range, false, &mut |row, _| {
        while going.next_if(|(_, key)| key.as_ref() < row).is_some() {}
        match going.next_if(|(_, key)| key.as_ref() == row) {
            Some(_) => staying = 0,
            None => staying += 1,
        }
        is_cut = staying > GAP_ROWS_MAX && going.peek().is_some();
        Ok(match is_cut || going.peek().is_none() {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        })
    })?;
    // Where no row is left, no key that is left has one.
    let end = if is_cut { going.peek().map(|(at, _)| *at) } else { None };
    Ok(end.unwrap_or(keys.len()).max(1))
}

fn erase_run<K: AsRef<[u8]>>(
    table: &mut RedbTable<'_, Bytes, Bytes>,
    run: &[K],
) -> Result<(), redb::StorageError> {
    match run {
        [] => Ok(()),
        [one] => table.remove(one.as_ref()).map(drop),
        [first, .., last] => {
            let mut going = run.iter().map(AsRef::as_ref).peekable();
            table.retain_in::<&[u8], _>(first.as_ref()..=last.as_ref(), |key, _| {
                while going.next_if(|next| *next < key).is_some() {}
                going.next_if(|next| *next == key).is_none()
            })
        }
    }
}
