//! The Lambda function `watch`.

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_runtime::Error> {
    osprey_lambda::run_schedule(async |ctx, ports| {
        let report = osprey_watch::handle(ctx, ports).await;
        tracing::info!(due = report.due, failed = report.failed, asked = report.asked, "a round is done.");
    })
    .await
}
