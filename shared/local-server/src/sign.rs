//! Signature version 4, the pure part. Source: the AWS documentation, "Create a signed AWS API request".

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::{Digest as _, Sha256};

use crate::encoding::{hex, percent_decoded, percent_encoded};

/// The only algorithm.
pub const ALGORITHM: &str = "AWS4-HMAC-SHA256";

/// What is signed of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Signable<'a> {
    /// Verb.
    pub method: &'a str,
    /// Path, as it travels.
    pub path: &'a str,
    /// What stands behind `?`, as it travels.
    pub query: &'a str,
    /// Signed headers by lower-case name, in the order of their names.
    pub headers: Vec<(String, String)>,
    /// SHA-256 of the body, hexadecimal.
    pub payload: String,
}

/// What a signature is good for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scope<'a> {
    /// Day, such as `20150830`.
    pub day: &'a str,
    /// Region.
    pub region: &'a str,
    /// Service.
    pub service: &'a str,
}

impl Scope<'_> {
    fn text(&self) -> String {
        format!("{}/{}/{}/aws4_request", self.day, self.region, self.service)
    }
}

/// SHA-256 in hexadecimal.
#[must_use]
pub fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// The text that stands for a request.
#[must_use]
pub fn canonical_request(request: &Signable<'_>) -> String {
    // The path is encoded once more than it travels, as for every service but S3.
    let path = if request.path.is_empty() { "/".to_owned() } else { percent_encoded(request.path.as_bytes(), b"/") };
    let headers: String = request.headers.iter().map(|(name, value)| format!("{name}:{}\n", trimmed(value))).collect();
    let names: Vec<&str> = request.headers.iter().map(|(name, _)| name.as_str()).collect();
    let query = canonical_query(request.query);
    format!("{}\n{path}\n{query}\n{headers}\n{}\n{}", request.method, names.join(";"), request.payload)
}

/// Names and values encoded alike, in their order.
fn canonical_query(query: &str) -> String {
    let encode = |text: &str| percent_encoded(&percent_decoded(text), b"");
    let mut pairs: Vec<(String, String)> = query
        .split('&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
        .map(|(name, value)| (encode(name), encode(value)))
        .collect();
    pairs.sort();
    pairs.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join("&")
}

fn trimmed(value: &str) -> String {
    value.split(' ').filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

/// The text that is signed. `time` is such as `20150830T123600Z`.
#[must_use]
pub fn string_to_sign(time: &str, scope: &Scope<'_>, canonical_request: &str) -> String {
    format!("{ALGORITHM}\n{time}\n{}\n{}", scope.text(), sha256(canonical_request.as_bytes()))
}

/// Signs.
#[must_use]
pub fn signature(secret: &str, scope: &Scope<'_>, string_to_sign: &str) -> String {
    hex(&keyed(secret, scope, string_to_sign).finalize().into_bytes())
}

/// Whether a signature is right; takes as long for one that is nearly right as for any other.
#[must_use]
pub fn is_signed(secret: &str, scope: &Scope<'_>, string_to_sign: &str, signature: &[u8]) -> bool {
    keyed(secret, scope, string_to_sign).verify_slice(signature).is_ok()
}

fn keyed(secret: &str, scope: &Scope<'_>, text: &str) -> Hmac<Sha256> {
    let mut key = format!("AWS4{secret}").into_bytes();
    for part in [scope.day, scope.region, scope.service, "aws4_request"] {
        key = mac(&key, part).finalize().into_bytes().to_vec();
    }
    mac(&key, text)
}

fn mac(key: &[u8], text: &str) -> Hmac<Sha256> {
    // A key of any length will do: a long one is hashed first.
    let mut block = [0_u8; 64];
    let hashed = if key.len() > block.len() { Sha256::digest(key).to_vec() } else { key.to_vec() };
    block.iter_mut().zip(hashed).for_each(|(slot, byte)| *slot = byte);
    let mut mac = Hmac::<Sha256>::new(&block.into());
    mac.update(text.as_bytes());
    mac
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";
    const TIME: &str = "20150830T123600Z";
    const SCOPE: Scope<'_> = Scope { day: "20150830", region: "us-east-1", service: "service" };

    fn headers(more: &[(&str, &str)]) -> Vec<(String, String)> {
        let mut all = vec![("host", "example.amazonaws.com"), ("x-amz-date", TIME)];
        all.extend(more);
        all.sort_unstable();
        all.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
    }

    fn signed(method: &str, path: &str, query: &str, more: &[(&str, &str)], body: &[u8]) -> String {
        let request = Signable { method, path, query, headers: headers(more), payload: sha256(body) };
        let text = string_to_sign(TIME, &SCOPE, &canonical_request(&request));
        let signature = signature(SECRET, &SCOPE, &text);
        assert!(is_signed(SECRET, &SCOPE, &text, &crate::encoding::unhex(&signature).unwrap()));
        assert!(!is_signed("other", &SCOPE, &text, &crate::encoding::unhex(&signature).unwrap()));
        signature
    }

    /// From AWS's published test suite for signature version 4.
    #[test]
    fn the_published_vectors_come_out() {
        let vanilla = "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31";
        assert_eq!(signed("GET", "/", "", &[], b""), vanilla);
        assert_eq!(
            signed("GET", "/", "Param2=value2&Param1=value1", &[], b""),
            "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500"
        );
        assert_eq!(
            signed("POST", "/", "", &[], b""),
            "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"
        );
        let form = [("content-type", "application/x-www-form-urlencoded")];
        assert_eq!(
            signed("POST", "/", "", &form, b"Param1=value1"),
            "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a"
        );
    }

    #[test]
    fn the_text_of_a_request_has_its_path_encoded_twice_and_its_query_in_order() {
        let request = Signable {
            method: "DELETE",
            path: "/v1/tags/arn%3Aaws",
            query: "tagKeys=b&tagKeys=a%20b&flag",
            headers: vec![("x-a".to_owned(), "  one   two ".to_owned())],
            payload: "p".to_owned(),
        };
        let want = "DELETE\n/v1/tags/arn%253Aaws\nflag=&tagKeys=a%20b&tagKeys=b\nx-a:one two\n\nx-a\np";
        assert_eq!(canonical_request(&request), want);
    }
}
