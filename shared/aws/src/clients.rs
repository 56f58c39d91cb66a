//! The SDK's clients, built once: one connection pool, one set of credentials, one place for time-outs and retries.

use std::time::Duration;

use aws_config::retry::RetryConfig;
use aws_config::stalled_stream_protection::StalledStreamProtectionConfig;
use aws_config::timeout::TimeoutConfig;
use aws_config::{BehaviorVersion, SdkConfig};
use aws_smithy_http_client::tls::{Provider, rustls_provider::CryptoMode};

/// A connection that was idle for so long isn't used again. Between two invocations a function is frozen, and a
/// connection that the other side has closed meanwhile would make the outcome of the next `SubmitJob` unknown.
const IDLE: Duration = Duration::from_secs(10);
/// To be connected.
const CONNECT: Duration = Duration::from_millis(3_100);
/// From the request to the first byte of the answer. A scan of Batch's list takes seconds at most.
const READ: Duration = Duration::from_secs(20);
/// For our own events, all tries together: the outbox makes up for those that are lost.
const EVENTS: Duration = Duration::from_secs(3);
/// Tries of one call that may be repeated, the first included.
const TRIES: u32 = 4;

/// The clients of every service.
#[derive(Clone, Debug)]
pub struct Clients {
    /// Batch, for calls that may be repeated.
    pub batch: aws_sdk_batch::Client,
    /// Batch, for the one call that must not be.
    pub batch_once: aws_sdk_batch::Client,
    /// DynamoDB.
    pub dynamodb: aws_sdk_dynamodb::Client,
    /// SQS.
    pub sqs: aws_sdk_sqs::Client,
    /// SNS.
    pub sns: aws_sdk_sns::Client,
    /// ECS.
    pub ecs: aws_sdk_ecs::Client,
    /// EventBridge, with less patience: what it doesn't take now is put again later.
    pub events: aws_sdk_eventbridge::Client,
}

impl Clients {
    /// Reads region, credentials and endpoints as every AWS tool does, and builds the clients. Nothing is sent.
    pub async fn from_environment() -> Self {
        Self::new(&loader().load().await)
    }

    /// Builds the clients on a configuration.
    #[must_use]
    pub fn new(config: &SdkConfig) -> Self {
        let once = aws_sdk_batch::config::Builder::from(config).retry_config(RetryConfig::disabled()).build();
        let hasty = aws_sdk_eventbridge::config::Builder::from(config)
            .timeout_config(TimeoutConfig::builder().connect_timeout(CONNECT).operation_timeout(EVENTS).build())
            .retry_config(RetryConfig::standard().with_max_attempts(2))
            .build();
        Self {
            batch: aws_sdk_batch::Client::new(config),
            batch_once: aws_sdk_batch::Client::from_conf(once),
            dynamodb: aws_sdk_dynamodb::Client::new(config),
            sqs: aws_sdk_sqs::Client::new(config),
            sns: aws_sdk_sns::Client::new(config),
            ecs: aws_sdk_ecs::Client::new(config),
            events: aws_sdk_eventbridge::Client::from_conf(hasty),
        }
    }
}

/// Where a configuration starts: our connections, time-outs and retries, everything else from the environment.
#[must_use]
pub fn loader() -> aws_config::ConfigLoader {
    let http = aws_smithy_http_client::Builder::new()
        .pool_idle_timeout(IDLE)
        .tls_provider(Provider::Rustls(CryptoMode::AwsLc))
        .build_https();
    aws_config::defaults(BehaviorVersion::v2026_01_12())
        .http_client(http)
        .stalled_stream_protection(StalledStreamProtectionConfig::disabled())
        .timeout_config(TimeoutConfig::builder().connect_timeout(CONNECT).read_timeout(READ).build())
        .retry_config(RetryConfig::standard().with_max_attempts(TRIES))
}
