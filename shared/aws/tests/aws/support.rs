//! Clients, and a runtime for them.

use std::time::Duration;

use aws_config::timeout::TimeoutConfig;
use aws_sdk_batch::config::Credentials;
use osprey_aws::Clients;

/// Runs a future on a runtime of its own.
pub fn run<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

/// Clients that speak to one endpoint with one key.
pub async fn clients(endpoint: &str, key: &str, secret: &str) -> Clients {
    let times = TimeoutConfig::builder().connect_timeout(Duration::from_secs(2)).read_timeout(Duration::from_secs(5));
    let loader = osprey_aws::clients::loader()
        .endpoint_url(endpoint)
        .region(aws_config::Region::new("us-east-1"))
        .credentials_provider(Credentials::new(key, secret, None, None, "test"))
        .timeout_config(times.build());
    Clients::new(&loader.load().await)
}

/// The endpoint of an emulator of DynamoDB, if the environment names one.
pub fn dynamodb_endpoint(what: &str) -> Option<String> {
    let endpoint = std::env::var("OSPREY_TEST_DYNAMODB_ENDPOINT").ok().filter(|endpoint| !endpoint.is_empty());
    if endpoint.is_none() {
        eprintln!("skipped: {what} needs an emulator; set OSPREY_TEST_DYNAMODB_ENDPOINT to its address");
    }
    endpoint
}
