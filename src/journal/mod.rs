//! journal: acknowledged records not yet sealed, row-wise, one journal per owner.
