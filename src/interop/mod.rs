//! interop: import and export.
