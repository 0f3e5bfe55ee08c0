//! sealed: closed bytes. Files named by the digest of their content, never changed again.
