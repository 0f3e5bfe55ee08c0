//! SQLite: a table of twenty columns, the time its key.

use std::ops::Range;
use std::path::Path;

use rusqlite::{Connection, params_from_iter};

use super::{FIELDS, Wide, name, value};
use crate::Outcome;

pub struct Sqlite(Connection);

impl Sqlite {
    pub fn open(dir: &Path) -> Outcome<Self> {
        let db = Connection::open(dir.join("peer.sqlite"))?;
        db.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get::<_, String>(0))?;
        let fields: Vec<String> = (0..FIELDS).map(|field| name(field) + " REAL").collect();
        let table = format!("n INTEGER PRIMARY KEY, {}", fields.join(", "));
        db.execute(&format!("CREATE TABLE IF NOT EXISTS w ({table})"), ())?;
        Ok(Self(db))
    }
}

impl Wide for Sqlite {
    fn append(&mut self, numbers: Range<u64>) -> Outcome<()> {
        let transaction = self.0.transaction()?;
        {
            let cells = vec!["?"; FIELDS + 1].join(", ");
            let mut insert =
                transaction.prepare_cached(&format!("INSERT INTO w VALUES ({cells})"))?;
            for number in numbers {
                let values = (0..FIELDS).map(|field| value(number, field).into());
                let key = std::iter::once(rusqlite::types::Value::from(number as i64));
                insert.execute(params_from_iter(key.chain(values)))?;
            }
        }
        Ok(transaction.commit()?)
    }

    fn project(&mut self, field: usize, numbers: Range<u64>) -> Outcome<Vec<f64>> {
        let field = name(field);
        let text = format!("SELECT {field} FROM w WHERE n >= ?1 AND n < ?2 ORDER BY n");
        let mut select = self.0.prepare_cached(&text)?;
        let rows = select.query_map([numbers.start as i64, numbers.end as i64], |r| r.get(0))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }
}
