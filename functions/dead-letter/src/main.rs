//! The Lambda function `dead-letter`.

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_runtime::Error> {
    osprey_lambda::run_queue(async |ctx, ports, queue, messages| {
        osprey_dead_letter::handle(ctx, ports, queue, messages).await
    })
    .await
}
