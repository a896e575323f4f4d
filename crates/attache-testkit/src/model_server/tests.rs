//! Tests of the server with a scripted model.
