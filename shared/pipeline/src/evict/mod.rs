//! Evictions: a job that runs makes room for a more urgent one, or because a person asks for it.
//!
//! 1. [`planned`]: the transaction that claims the job which is to start also writes who goes for it. From then on what
//!    they hold is that job's, and nobody evicts them a second time.
//! 2. [`order`]: once Batch has that job, and not before, each victim's record is marked and its [`receipt`] written, in
//!    one transaction that demands that the plan still stands. A victim that has ended meanwhile has ended.
//! 3. Only then is Batch asked to stop it ([`crate::stop::push`]), and again every minute until its end is known.
//! 4. The end closes the receipt ([`crate::apply`]). It is an eviction only if Batch says it in our words *and* the
//!    record is marked.
//!
//! Whoever stands still or ends between two of these steps leaves the plan's row; the pool's next cycle goes on from it, as
//! often as it takes. A plan whose job isn't on its way any more is withdrawn, and costs nobody anything.

pub mod order;
pub mod planned;
pub mod receipt;
pub mod window;

pub use order::{carry_out, resume};
pub use planned::{Planned, Victim};
pub use receipt::{By, Receipt, Rule};
