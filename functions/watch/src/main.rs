//! The Lambda function `watch`.

use osprey_lambda::Function;
use osprey_ports::{Clock as _, QueueKind};

const WATCH: Function =
    Function { name: "watch", sends_to: &[QueueKind::Internal, QueueKind::Wake], notifies: true, submits: true };

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_runtime::Error> {
    osprey_lambda::run_schedule(WATCH, async |ctx, ports| {
        let report = osprey_watch::handle(ctx, ports).await;
        tracing::info!(due = report.due, failed = report.failed, asked = report.asked, "a round is done.");
        if let Err(failure) = osprey_watch::numbers::tell(ctx, ports, ports.now().as_millisecond()).await {
            tracing::warn!(error = failure.story(), "the queue could not be counted.");
        }
    })
    .await
}
