//! manifest: the truth. Every fact is a row here, changed in transactions.
