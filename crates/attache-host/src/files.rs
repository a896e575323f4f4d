//! Text files beneath the roots of a session.
