//! A byte layout, written once: where each field stands, the table that docs/FORMAT.md is compared with, and
//! the length of all. Fields follow each other without a hole, or it does not compile.

macro_rules! layout {
    ($(#[$doc:meta])* $table:ident, $(#[$total_doc:meta])* $total:ident: $($at:ident $name:literal $offset:literal + $width:literal,)*) => {
        $(const $at: std::ops::Range<usize> = $offset..$offset + $width;)*
        $(#[$doc])*
        pub const $table: &[(&str, usize, usize)] = &[$(($name, $offset, $width)),*];
        $(#[$total_doc])*
        pub const $total: usize = { let mut end = 0; $(assert!(end == $offset); end += $width;)* end };
    };
}

pub(super) use layout;
