//! Methods of your own: their names begin with `_`, their types are any that serde knows.

use attache_proto::json::RawJson;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::Error;
use crate::link::{Link, Router};

/// Calls an extension method.
pub(crate) async fn call<R: Router, T: DeserializeOwned>(
    link: &Link<R>,
    method: &str,
    params: &(impl Serialize + ?Sized),
) -> Result<T, Error> {
    let params = checked(method, params)?;
    let answer = link.call_raw(method, &mut |writer| writer.value(&params)).await?;
    answer.parse().map_err(|_| Error::Invalid(format!("the answer to `{method}` is not as expected")))
}

/// Sends a notification of an extension method.
pub(crate) async fn notify<R: Router>(
    link: &Link<R>,
    method: &str,
    params: &(impl Serialize + ?Sized),
) -> Result<(), Error> {
    let params = checked(method, params)?;
    link.send(|_, port| port.peer.notify(method, |writer| writer.value(&params), port.out)).await
}

fn checked(method: &str, params: &(impl Serialize + ?Sized)) -> Result<RawJson, Error> {
    if !method.starts_with('_') {
        return Err(Error::Invalid(format!("`{method}` is not an extension method: the name must begin with `_`")));
    }
    let params = RawJson::from_value(params).map_err(|error| Error::Invalid(error.to_string()))?;
    // JSON-RPC knows no other params; a peer could not even say to which request its refusal belongs.
    if !params.as_str().starts_with(['{', '[']) {
        return Err(Error::Invalid(format!("the params of `{method}` are neither an object nor an array")));
    }
    Ok(params)
}
