//! Who calls: signature version 4 with the state directory's key, checked as the services check it.

use jiff::civil::DateTime;
use jiff::{SignedDuration, Timestamp};

use crate::credentials::{Credentials, REGION};
use crate::encoding::unhex;
use crate::failure::{Failure, Protocol};
use crate::http::Call;
use crate::sign::{self, ALGORITHM, Scope, Signable};

/// How far the time of a signature may be from now, before or after.
pub const SKEW_MAX: SignedDuration = SignedDuration::from_mins(5);

/// The parts of an `Authorization` header.
struct Authorization<'a> {
    key_id: &'a str,
    scope: Scope<'a>,
    signed_headers: Vec<&'a str>,
    signature: &'a str,
}

/// Checks what can be checked before the body is read: there is a signature, by a known key, of about now.
///
/// # Errors
/// As the services answer, with 403.
pub fn check_head(call: &Call, key: &Credentials, now: Timestamp) -> Result<(), Failure> {
    let header = call.header("authorization").ok_or_else(|| missing(call.protocol()))?;
    let authorization = Authorization::parse(&header)?;
    if authorization.key_id != key.key_id || call.headers.contains_key("x-amz-security-token") {
        return Err(unrecognized());
    }
    check_scope(&authorization.scope, call.protocol())?;
    check_time(&time_of(call)?, &authorization.scope, now)
}

/// Checks the signature over the whole call.
///
/// # Errors
/// As the services answer, with 403.
pub fn check_whole(call: &Call, key: &Credentials) -> Result<(), Failure> {
    let header = call.header("authorization").ok_or_else(|| missing(call.protocol()))?;
    let authorization = Authorization::parse(&header)?;
    let payload = sign::sha256(&call.body);
    if call.header("x-amz-content-sha256").is_some_and(|claimed| claimed != payload) {
        return Err(mismatch());
    }
    let headers = signed_headers(call, &authorization.signed_headers)?;
    let signable = Signable { method: &call.method, path: &call.path, query: &call.query, headers, payload };
    let canonical = sign::canonical_request(&signable);
    let text = sign::string_to_sign(&time_of(call)?, &authorization.scope, &canonical);
    let signature = unhex(authorization.signature).ok_or_else(mismatch)?;
    if sign::is_signed(&key.secret, &authorization.scope, &text, &signature) { Ok(()) } else { Err(mismatch()) }
}

impl<'a> Authorization<'a> {
    fn parse(header: &'a str) -> Result<Self, Failure> {
        let incomplete = || {
            Failure::new(
                403,
                "IncompleteSignatureException",
                "Authorization header requires 'Credential', 'SignedHeaders' and 'Signature' parameters.",
            )
        };
        let rest = header.strip_prefix(ALGORITHM).ok_or_else(incomplete)?;
        let part = |name: &str| {
            let parts = rest.split(',').map(str::trim);
            parts.filter_map(|part| part.split_once('=')).find(|(known, _)| *known == name).map(|(_, value)| value)
        };
        let credential: Vec<&str> = part("Credential").ok_or_else(incomplete)?.split('/').collect();
        let [key_id, day, region, service, "aws4_request"] = *credential else { return Err(incomplete()) };
        Ok(Self {
            key_id,
            scope: Scope { day, region, service },
            signed_headers: part("SignedHeaders").ok_or_else(incomplete)?.split(';').collect(),
            signature: part("Signature").ok_or_else(incomplete)?,
        })
    }
}

fn check_scope(scope: &Scope<'_>, protocol: Protocol) -> Result<(), Failure> {
    let service = match protocol {
        Protocol::Batch => "batch",
        Protocol::Sqs => "sqs",
    };
    if scope.region != REGION {
        return Err(invalid(format!("Credential should be scoped to a valid region, not '{}'.", scope.region)));
    }
    if scope.service != service {
        return Err(invalid(format!("Credential should be scoped to correct service: '{service}'.")));
    }
    Ok(())
}

fn check_time(time: &str, scope: &Scope<'_>, now: Timestamp) -> Result<(), Failure> {
    let at = DateTime::strptime("%Y%m%dT%H%M%SZ", time)
        .and_then(|at| jiff::tz::TimeZone::UTC.to_timestamp(at))
        .map_err(|_| incomplete_time(time))?;
    if !time.starts_with(scope.day) || scope.day.len() != 8 {
        return Err(invalid(format!(
            "Date in Credential scope does not match YYYYMMDD from ISO-8601 version of date from HTTP: '{}' != '{time}'.",
            scope.day
        )));
    }
    let written = |at: Timestamp| at.strftime("%Y%m%dT%H%M%SZ").to_string();
    if at.duration_since(now) > SKEW_MAX {
        let (now, latest) = (written(now), written(now.saturating_add(SKEW_MAX).unwrap_or(now)));
        return Err(invalid(format!(
            "Signature not yet current: {time} is still later than {latest} ({now} + 5 min.)"
        )));
    }
    if now.duration_since(at) > SKEW_MAX {
        let (now, earliest) = (written(now), written(now.saturating_sub(SKEW_MAX).unwrap_or(now)));
        return Err(invalid(format!("Signature expired: {time} is now earlier than {earliest} ({now} - 5 min.)")));
    }
    Ok(())
}

fn time_of(call: &Call) -> Result<String, Failure> {
    call.header("x-amz-date").ok_or_else(|| incomplete_time(""))
}

/// The signed headers with their values. Those that a forger would change have to be among them.
fn signed_headers(call: &Call, names: &[&str]) -> Result<Vec<(String, String)>, Failure> {
    let demanded = ["host", "x-amz-date", "x-amz-target"];
    let is_there = |name: &&&str| call.headers.contains_key(**name);
    if demanded.iter().filter(is_there).any(|name| !names.contains(name)) {
        return Err(invalid(
            "'Host', 'X-Amz-Date' and 'X-Amz-Target' must be 'SignedHeaders' in the AWS Authorization.",
        ));
    }
    let mut headers: Vec<(String, String)> = names
        .iter()
        .map(|name| Ok((name.to_ascii_lowercase(), call.header(name).ok_or_else(mismatch)?)))
        .collect::<Result<_, Failure>>()?;
    headers.sort();
    Ok(headers)
}

fn invalid(message: impl Into<String>) -> Failure {
    Failure::new(403, "InvalidSignatureException", message)
}

fn mismatch() -> Failure {
    invalid(
        "The request signature we calculated does not match the signature you provided. Check your AWS Secret Access \
         Key and signing method. Consult the service documentation for details.",
    )
}

fn unrecognized() -> Failure {
    Failure::new(403, "UnrecognizedClientException", "The security token included in the request is invalid.")
}

fn incomplete_time(time: &str) -> Failure {
    Failure::new(403, "IncompleteSignatureException", format!("Date must be in ISO-8601 'basic format'. Got '{time}'."))
}

/// What Batch's front says of a call without a signature, and of a path or verb that it doesn't know.
#[must_use]
pub fn missing(protocol: Protocol) -> Failure {
    let message = match protocol {
        Protocol::Batch => "Missing Authentication Token",
        Protocol::Sqs => "Request is missing Authentication Token",
    };
    Failure::new(403, "MissingAuthenticationTokenException", message)
}

#[cfg(test)]
#[path = "auth_tests.rs"]
mod tests;
