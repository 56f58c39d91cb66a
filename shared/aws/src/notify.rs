//! SNS.

use aws_sdk_sns::Client;
use osprey_ports::{CallError, Notice, Notify};

use crate::fault::Fault;

/// The operators' topic.
#[derive(Clone, Debug)]
pub struct SnsTopic {
    client: Client,
    arn: Option<String>,
}

impl SnsTopic {
    /// The topic of this ARN. Without one nothing can be published.
    #[must_use]
    pub fn new(client: Client, arn: Option<String>) -> Self {
        Self { client, arn }
    }
}

impl Notify for SnsTopic {
    async fn notify(&self, notice: &Notice) -> Result<(), CallError> {
        let Some(arn) = &self.arn else {
            return Err(CallError::Denied("`OSPREY_TOPIC_ARN` is not set for this function".to_owned()));
        };
        let sent =
            self.client.publish().topic_arn(arn).subject(subject(&notice.subject)).message(&notice.text).send().await;
        sent.map(drop).map_err(|error| Fault::of("sns:Publish", &error).into())
    }
}

/// A subject that SNS takes: up to 100 ASCII characters on one line, starting with a letter, a digit or a mark.
fn subject(text: &str) -> String {
    let plain = |c: char| if c.is_ascii_graphic() || c == ' ' { c } else { '?' };
    text.chars().map(plain).take(100).collect::<String>().trim_start().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subject_is_ascii_on_one_line() {
        assert_eq!(subject("Osprey: job é…\nx"), "Osprey: job ???x");
        assert_eq!(subject(&"y".repeat(200)).len(), 100);
    }
}
