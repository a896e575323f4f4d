//! What follows from what, row by row.

use super::*;
