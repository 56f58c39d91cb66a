//! The Lambda function `requeue`.

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_runtime::Error> {
    osprey_lambda::run_queue(async |ctx, ports, _queue, messages| osprey_requeue::handle(ctx, ports, messages).await)
        .await
}
