//! The Lambda function `dead-letter`.

use osprey_lambda::Function;
use osprey_ports::QueueKind;

const DEAD_LETTER: Function =
    Function { name: "dead-letter", sends_to: &[QueueKind::Internal], notifies: true, submits: false };

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_runtime::Error> {
    osprey_lambda::run_queue(DEAD_LETTER, async |ctx, ports, queue, messages| {
        osprey_dead_letter::handle(ctx, ports, queue, messages).await
    })
    .await
}
