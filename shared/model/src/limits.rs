//! Limits of what Osprey carries and of what Batch takes, each with its reason and its source.
//!
//! Batch says most of these only after a job is submitted, some only after it has failed. Checked here first, the
//! sender hears the limit, what he gave and the way out, and no `SubmitJob` of the fifty a second is spent on it.
//! Sources: the Batch API reference (`SubmitJob`), the Batch user guide (`service_limits`), the SQS API reference.

/// Most bytes of a body of the submission queue.
///
/// A queue carries messages of up to 1 MiB (SQS quotas). A larger body can only come from a file; taking it there
/// would make something possible on one machine that can't happen on AWS.
pub const MESSAGE_BYTES_MAX: usize = 1_048_576;

/// Most bytes of a `SubmitJob` request as it is sent.
///
/// The service counts the payload and answers `Job size must be less than 30 KiB` (user guide, service quotas; it
/// can't be raised).
pub const REQUEST_BYTES_MAX: usize = 30 * 1_024;

/// Bytes of a request kept for what Osprey adds: its tags, its variables, share, priority, pinned names.
///
/// The variables of one container ([`OVERRIDES_CHARACTERS_OURS`]), four tags, the name of a tier queue, a share, and
/// room to grow. Without the margin a request of 29.9 KiB would be admitted and refused by Batch.
pub const REQUEST_BYTES_OURS: usize = 2_048;

/// Most characters of the overrides of one job.
///
/// The limit of the container service's `RunTask`, which Batch doesn't check: such a job is accepted and fails later
/// with `Container Overrides length must be at most 8192`.
pub const OVERRIDES_CHARACTERS_MAX: usize = 8_192;

/// Characters of the overrides of each container kept for the variables that Osprey adds.
///
/// Job id, attempt, tier, priority, the attempt before, grown memory, and two checkpoint addresses of
/// [`CHECKPOINT_URI_CHARACTERS_MAX`]: where checkpoints belong and where the newest is, with their JSON around them.
pub const OVERRIDES_CHARACTERS_OURS: usize = 896;

/// Most characters of the address of a checkpoint that a job reports.
pub const CHECKPOINT_URI_CHARACTERS_MAX: usize = 200;

/// Most characters of a job's name (API reference, `SubmitJob`, `jobName`).
pub const JOB_NAME_CHARACTERS_MAX: usize = 128;

/// Most jobs that one job may depend on (user guide, service quotas).
pub const DEPENDENCIES_MAX: usize = 20;

/// Fewest children of an array job (API reference, `ArrayProperties`).
pub const ARRAY_SIZE_MIN: i64 = 2;

/// Most children of an array job (API reference, `ArrayProperties`).
pub const ARRAY_SIZE_MAX: i64 = 10_000;

/// Shortest time-out of an attempt in seconds (API reference, `JobTimeout`): below it Batch couldn't tell a run from its start.
pub const TIMEOUT_SECONDS_MIN: i64 = 60;

/// Longest time-out of an attempt in seconds: the API's integers have 32 bits.
pub const TIMEOUT_SECONDS_MAX: i64 = i32::MAX as i64;

/// Most tags of a job, Osprey's own included (API reference, `tags`).
///
/// With `propagateTags` the tags of the job definition count as well, and a job above the limit is accepted and then
/// moved to FAILED.
pub const TAGS_MAX: usize = 50;

/// Most characters of a tag's key (API reference, `TagKey`).
pub const TAG_KEY_CHARACTERS_MAX: usize = 128;

/// Most characters of a tag's value (API reference, `TagValue`).
pub const TAG_VALUE_CHARACTERS_MAX: usize = 256;

/// Most characters of a share identifier, letters and digits only (API reference, `shareIdentifier`).
pub const SHARE_CHARACTERS_MAX: usize = 255;

/// Highest scheduling priority; the lowest is 0 (API reference, `schedulingPriorityOverride`).
pub const PRIORITY_MAX: i64 = 9_999;

/// Most attempts of a retry strategy; the fewest is 1 (API reference, `RetryStrategy`).
pub const RETRY_ATTEMPTS_MAX: i64 = 10;

/// Most rules of a retry strategy (API reference, `RetryStrategy`, `evaluateOnExit`).
pub const EXIT_RULES_MAX: usize = 5;

/// Most characters of a pattern in a retry rule (API reference, `EvaluateOnExit`).
pub const EXIT_PATTERN_CHARACTERS_MAX: usize = 512;

/// Most nodes of a multi-node job.
///
/// Batch names no number; the cluster below it takes 5,000 instances (container service quotas), so a job that asks
/// for more can never start. It also bounds the walk over the nodes.
pub const NODES_MAX: i64 = 5_000;

/// Most GPUs of one container. The largest instances have 16; the bound only keeps sums far from overflow, and what
/// no pool has is refused with the pool's own number.
pub const CONTAINER_GPUS_MAX: u32 = 65_536;

/// Most vCPUs of one container, for the same reason; the largest instances have 1,920.
pub const CONTAINER_VCPUS_MAX: u32 = 65_536;

/// Least memory of a container in MiB (API reference, `ResourceRequirement`: `MEMORY` must be at least 4).
pub const CONTAINER_MEMORY_MIB_MIN: u64 = 4;

/// Most memory of one container in MiB, 1 PiB: the largest instances have 32 TiB; the bound keeps sums from overflow.
pub const CONTAINER_MEMORY_MIB_MAX: u64 = 1 << 30;

/// Most characters of a metadata text, the same as of a tag's value, so that both sources can say the same.
pub const METADATA_CHARACTERS_MAX: usize = TAG_VALUE_CHARACTERS_MAX;

/// Longest duration in seconds, 68 years: the API's integers have 32 bits, and times stay far from overflow.
pub const DURATION_SECONDS_MAX: u64 = i32::MAX as u64;

/// Largest size in bytes, 8 EiB less one: sizes are signed 64-bit numbers in rules.
pub const SIZE_BYTES_MAX: u64 = i64::MAX as u64;

const _: () = assert!(REQUEST_BYTES_OURS < REQUEST_BYTES_MAX && REQUEST_BYTES_MAX < MESSAGE_BYTES_MAX);
const _: () = assert!(OVERRIDES_CHARACTERS_OURS < OVERRIDES_CHARACTERS_MAX);

/// Most characters of the reason of CancelJob and TerminateJob.
///
/// TerminateJob takes 1,024 (Batch API reference); a longer one would be refused after the wish was recorded.
pub const REASON_CHARS_MAX: usize = 1024;
