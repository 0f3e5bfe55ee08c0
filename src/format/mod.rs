//! format: bytes to values and back. Pure functions: no I/O, no clock.
