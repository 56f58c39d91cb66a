//! The Lambda function `schedule`.

use osprey_lambda::Function;
use osprey_ports::QueueKind;

const SCHEDULE: Function =
    Function { name: "schedule", sends_to: &[QueueKind::Internal, QueueKind::Wake], notifies: false, submits: true };

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_runtime::Error> {
    osprey_lambda::run_queue(SCHEDULE, async |ctx, ports, _queue, messages| {
        osprey_schedule::handle(ctx, ports, messages).await
    })
    .await
}
