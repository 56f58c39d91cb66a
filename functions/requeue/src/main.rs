//! The Lambda function `requeue`.

use osprey_lambda::Function;
use osprey_ports::QueueKind;

const REQUEUE: Function =
    Function { name: "requeue", sends_to: &[QueueKind::Internal, QueueKind::Wake], notifies: false, submits: false };

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_runtime::Error> {
    osprey_lambda::run_queue(REQUEUE, async |ctx, ports, _queue, messages| {
        osprey_requeue::handle(ctx, ports, messages).await
    })
    .await
}
