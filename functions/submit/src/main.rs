//! The Lambda function `submit`.

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_runtime::Error> {
    osprey_lambda::run_queue(async |ctx, ports, queue, messages| {
        osprey_submit::handle(ctx, ports, queue, messages).await
    })
    .await
}
