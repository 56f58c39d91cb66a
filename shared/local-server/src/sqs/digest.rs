//! MD5 sums of texts and attributes, by which clients check what arrived. Source: the SQS developer guide, "Calculating
//! the MD5 message digest for message attributes".

use md5::{Digest as _, Md5};
use serde_json::{Map, Value};

use crate::encoding::{base64_decoded, hex};

/// Of a text.
#[must_use]
pub fn of_text(text: &str) -> String {
    hex(&Md5::digest(text.as_bytes()))
}

/// Of message attributes, by name; `None` when there are none.
#[must_use]
pub fn of_attributes(attributes: &Map<String, Value>) -> Option<String> {
    if attributes.is_empty() {
        return None;
    }
    let mut names: Vec<&String> = attributes.keys().collect();
    names.sort();
    let mut sum = Md5::new();
    for name in names {
        let member = |key: &str| attributes.get(name).and_then(|value| value.get(key)).and_then(Value::as_str);
        put(&mut sum, name.as_bytes());
        put(&mut sum, member("DataType").unwrap_or_default().as_bytes());
        match (member("StringValue"), member("BinaryValue")) {
            (None, Some(binary)) => {
                sum.update([2]);
                put(&mut sum, &base64_decoded(binary).unwrap_or_default());
            }
            (text, _) => {
                sum.update([1]);
                put(&mut sum, text.unwrap_or_default().as_bytes());
            }
        }
    }
    Some(hex(&sum.finalize()))
}

fn put(sum: &mut Md5, bytes: &[u8]) {
    sum.update(u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_be_bytes());
    sum.update(bytes);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn sums_are_those_of_the_services_own_clients() {
        assert_eq!(of_text("hello"), "5d41402abc4b2a76b9719d911017c592");
        assert_eq!(of_attributes(&Map::new()), None);
        let attributes = json!({
            "b": {"DataType": "Binary", "BinaryValue": "AAEC"},
            "a": {"DataType": "String", "StringValue": "x"},
        });
        // Computed by hand from the description: 1a String 1 x, 1b Binary 2 000102.
        let parts: [&[u8]; 14] = [
            &[0, 0, 0, 1],
            b"a",
            &[0, 0, 0, 6],
            b"String",
            &[1],
            &[0, 0, 0, 1],
            b"x",
            &[0, 0, 0, 1],
            b"b",
            &[0, 0, 0, 6],
            b"Binary",
            &[2],
            &[0, 0, 0, 3],
            &[0, 1, 2],
        ];
        let want = hex(&Md5::digest(parts.concat()));
        assert_eq!(of_attributes(attributes.as_object().unwrap()), Some(want));
    }
}
