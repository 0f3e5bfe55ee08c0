//! SQLite: write-ahead log, `synchronous=FULL` for *Durable* and `OFF` for *Written*.

use std::ops::Range;
use std::path::Path;

use rusqlite::Connection;

use super::{Each, Peer, Promise, Setup};
use crate::Outcome;
use crate::payload::Source;

pub struct Sqlite {
    db: Connection,
}

impl Sqlite {
    /// Tuned: large pages, a large log, no other process. Otherwise as it comes.
    pub fn open(dir: &Path, setup: &Setup, tuned: bool) -> Outcome<Self> {
        let db = Connection::open(dir.join("peer.sqlite"))?;
        db.busy_timeout(std::time::Duration::from_secs(60))?;
        if tuned {
            db.pragma_update(None, "page_size", 32768)?;
            db.pragma_update(None, "locking_mode", "EXCLUSIVE")?;
        }
        db.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get::<_, String>(0))?;
        let synchronous = if setup.promise == Promise::Durable { "FULL" } else { "OFF" };
        db.pragma_update(None, "synchronous", synchronous)?;
        if tuned {
            let pages = (64 << 20) / 32768;
            db.pragma_update_and_check(None, "wal_autocheckpoint", pages, |row| {
                row.get::<_, i64>(0)
            })?;
        }
        db.execute("CREATE TABLE IF NOT EXISTS r (n INTEGER PRIMARY KEY, v BLOB NOT NULL)", ())?;
        Ok(Self { db })
    }
}

impl Peer for Sqlite {
    fn append(&mut self, numbers: Range<u64>, source: &mut dyn Source) -> Outcome<()> {
        let transaction =
            self.db.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
        {
            let mut insert = transaction.prepare_cached("INSERT INTO r VALUES (?1, ?2)")?;
            for number in numbers {
                insert.execute((number as i64, source.record(number)))?;
            }
        }
        Ok(transaction.commit()?)
    }

    fn read(&mut self, number: u64) -> Outcome<Vec<u8>> {
        let mut select = self.db.prepare_cached("SELECT v FROM r WHERE n = ?1")?;
        Ok(select.query_row([number as i64], |row| row.get(0))?)
    }

    fn scan(&mut self, numbers: Range<u64>, each: &mut Each<'_>) -> Outcome<()> {
        let text = "SELECT n, v FROM r WHERE n >= ?1 AND n < ?2 ORDER BY n";
        let mut select = self.db.prepare_cached(text)?;
        let mut rows = select.query([numbers.start as i64, numbers.end as i64])?;
        while let Some(row) = rows.next()? {
            each(row.get::<_, i64>(0)? as u64, row.get_ref(1)?.as_blob()?)?;
        }
        Ok(())
    }

    fn count(&mut self) -> Outcome<u64> {
        Ok(self.db.query_row("SELECT count(*) FROM r", (), |row| row.get::<_, i64>(0))? as u64)
    }
}
