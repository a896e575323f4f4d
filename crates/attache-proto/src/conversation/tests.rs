//! What follows from what, row by row.
