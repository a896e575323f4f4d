//! Which directories the user trusts, bound to what is in them.
