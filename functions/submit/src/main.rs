//! The Lambda function `submit`.

use osprey_lambda::Function;
use osprey_ports::QueueKind;

const SUBMIT: Function =
    Function { name: "submit", sends_to: &[QueueKind::Internal, QueueKind::Wake], notifies: false, submits: true };

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_runtime::Error> {
    osprey_lambda::run_queue(SUBMIT, async |ctx, ports, queue, messages| {
        osprey_submit::handle(ctx, ports, queue, messages).await
    })
    .await
}
