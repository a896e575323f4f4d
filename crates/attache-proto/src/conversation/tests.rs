//! What follows from what, row by row. Single quotes stand for double ones in JSON.

mod agent_session;
mod client_session;
mod greeting;
mod offer;
mod opening;
mod options;

use super::*;
use crate::json::Reader;
use crate::{Decode, Dialect, Encode};

const V1: Dialect = Dialect::V1;
const DRAFT: Dialect = Dialect::V2Draft;
const V2: Dialect = Dialect::V2;

#[track_caller]
fn read<T: Decode>(json: &str, dialect: Dialect) -> T {
    let json = json.replace('\'', "\"");
    Reader::new(&json, dialect).decode().unwrap_or_else(|error| panic!("{json}: {error}"))
}

fn write(value: &impl Encode, dialect: Dialect) -> String {
    crate::json::RawJson::encode_in(value, dialect).as_str().replace('"', "'")
}
