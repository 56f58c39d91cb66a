//! Amounts: reading the texts, and adding them up.

use crate::limits::{CONTAINER_GPUS_MAX, CONTAINER_MEMORY_MIB_MAX, CONTAINER_MEMORY_MIB_MIN, CONTAINER_VCPUS_MAX};
use crate::message::words::{nearest, quote};
use crate::metadata::parse_size;
use crate::reason::{ReasonCode, Refusal};
use crate::request::{EksResources, ResourceRequirement};

/// How an EKS container names its GPUs.
const EKS_GPU: &str = "nvidia.com/gpu";

/// Amounts of a node or of a whole job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Amounts {
    pub(super) gpus: u64,
    pub(super) vcpu_thousandths: u64,
    pub(super) memory_mib: u64,
}

impl Amounts {
    pub(super) fn add(&mut self, other: Self) {
        self.gpus = self.gpus.saturating_add(other.gpus);
        self.vcpu_thousandths = self.vcpu_thousandths.saturating_add(other.vcpu_thousandths);
        self.memory_mib = self.memory_mib.saturating_add(other.memory_mib);
    }

    pub(super) fn at_least(&mut self, other: Self) {
        self.gpus = self.gpus.max(other.gpus);
        self.vcpu_thousandths = self.vcpu_thousandths.max(other.vcpu_thousandths);
        self.memory_mib = self.memory_mib.max(other.memory_mib);
    }
}

/// A sum as a 32-bit number; what is above that is above every pool as well.
pub(super) fn narrow(sum: u64) -> u32 {
    u32::try_from(sum).unwrap_or(u32::MAX)
}

/// What one place says of one container; absent is "as elsewhere".
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Given {
    gpus: Option<u32>,
    vcpu_thousandths: Option<u64>,
    memory_mib: Option<u64>,
}

impl Given {
    /// This, and where it is silent, the other.
    pub(super) fn or_given(self, other: Self) -> Self {
        Self {
            gpus: self.gpus.or(other.gpus),
            vcpu_thousandths: self.vcpu_thousandths.or(other.vcpu_thousandths),
            memory_mib: self.memory_mib.or(other.memory_mib),
        }
    }

    /// This, where it is silent the other, where both are, nothing.
    pub(super) fn or(self, other: Self) -> Amounts {
        let both = self.or_given(other);
        Amounts {
            gpus: u64::from(both.gpus.unwrap_or(0)),
            vcpu_thousandths: both.vcpu_thousandths.unwrap_or(0),
            memory_mib: both.memory_mib.unwrap_or(0),
        }
    }
}

/// Reads `resourceRequirements`, each type at most once.
pub(super) fn requirements(list: &[ResourceRequirement], container: &str) -> Result<Given, Refusal> {
    let mut given = Given::default();
    for (index, requirement) in list.iter().enumerate() {
        let path = format!("{container}.resourceRequirements[{index}]");
        let value = requirement.value.as_str();
        let is_first = match requirement.kind.as_str() {
            "GPU" => given.gpus.replace(gpus(value, &format!("{path}.value"))?).is_none(),
            "VCPU" => given.vcpu_thousandths.replace(vcpus(value, &format!("{path}.value"))?).is_none(),
            "MEMORY" => given.memory_mib.replace(memory(value, &format!("{path}.value"))?).is_none(),
            other => return Err(unknown_kind(other, &path)),
        };
        if !is_first {
            let kind = &requirement.kind;
            return Err(invalid(format!("`{container}.resourceRequirements` names `{kind}` twice; keep one")));
        }
    }
    Ok(given)
}

fn unknown_kind(kind: &str, path: &str) -> Refusal {
    let help = nearest(kind, ["GPU", "VCPU", "MEMORY"]).map(|near| format!("; did you mean {}?", quote(near)));
    let help = help.unwrap_or_default();
    invalid(format!("`{path}.type` must be `GPU`, `VCPU` or `MEMORY`; {} was given{help}", quote(kind)))
}

/// Reads the deprecated members `vcpus` and `memory`.
pub(super) fn deprecated(vcpus: Option<i64>, memory: Option<i64>, container: &str) -> Result<Given, Refusal> {
    let vcpus = vcpus.map(|count| self::vcpus(&count.to_string(), &format!("{container}.vcpus"))).transpose()?;
    let memory = memory.map(|mib| self::memory(&mib.to_string(), &format!("{container}.memory"))).transpose()?;
    Ok(Given { gpus: None, vcpu_thousandths: vcpus, memory_mib: memory })
}

/// Reads the resources of a pod's container: its limits, else its requests.
pub(super) fn pod(resources: Option<&EksResources>, path: &str) -> Result<Given, Refusal> {
    let Some(resources) = resources else { return Ok(Given::default()) };
    let find = |name: &str| {
        let of = |map: &'_ Option<_>, kind: &str| -> Option<(String, String)> {
            let map: &std::collections::BTreeMap<String, String> = map.as_ref()?;
            map.get(name).map(|value| (value.clone(), format!("{path}.{kind}.{name}")))
        };
        of(&resources.limits, "limits").or_else(|| of(&resources.requests, "requests"))
    };
    Ok(Given {
        gpus: find(EKS_GPU).map(|(value, path)| gpus(&value, &path)).transpose()?,
        vcpu_thousandths: find("cpu").map(|(value, path)| pod_cpu(&value, &path)).transpose()?,
        memory_mib: find("memory").map(|(value, path)| pod_memory(&value, &path)).transpose()?,
    })
}

/// GPUs are whole: a part of one needs MIG, which Batch has no word for.
fn gpus(text: &str, path: &str) -> Result<u32, Refusal> {
    let text = text.trim();
    let whole = digits(text).and_then(|count| u32::try_from(count).ok());
    if let Some(count) = whole.filter(|count| (1..=CONTAINER_GPUS_MAX).contains(count)) {
        return Ok(count);
    }
    let help = match thousandths(text) {
        Some(parts) if parts > 0 && text.contains('.') => {
            format!("parts of a GPU need MIG, which Batch can't ask for: ask for `{}`", parts.div_ceil(1_000))
        }
        Some(0) => "a job without GPUs leaves it out".to_owned(),
        _ => "ask for as many as the job uses".to_owned(),
    };
    Err(invalid(format!(
        "`{path}` must be a whole number of GPUs from 1 to {CONTAINER_GPUS_MAX}; {} was given; {help}",
        quote(text)
    )))
}

fn vcpus(text: &str, path: &str) -> Result<u64, Refusal> {
    let most = u64::from(CONTAINER_VCPUS_MAX) * 1_000;
    thousandths(text.trim()).filter(|parts| (1..=most).contains(parts)).ok_or_else(|| {
        let wanted = format!("a number of vCPUs above 0 and up to {CONTAINER_VCPUS_MAX}, such as `4` or `0.25`");
        invalid(format!("`{path}` must be {wanted}; {} was given", quote(text)))
    })
}

fn memory(text: &str, path: &str) -> Result<u64, Refusal> {
    digits(text.trim()).filter(in_memory_range).ok_or_else(|| {
        // Somebody who writes `16GiB` knows what he wants and only not in which unit.
        let mib = parse_size(text).ok().filter(|_| text.contains(char::is_alphabetic)).map(|bytes| bytes >> 20);
        let help = mib.filter(in_memory_range).map(|mib| format!("; write `{mib}`")).unwrap_or_default();
        not_memory(text, path, &help)
    })
}

fn pod_cpu(text: &str, path: &str) -> Result<u64, Refusal> {
    match text.trim().strip_suffix('m').and_then(digits) {
        Some(thousandths) if thousandths > 0 => Ok(thousandths),
        _ => vcpus(text, path),
    }
}

fn pod_memory(text: &str, path: &str) -> Result<u64, Refusal> {
    let mib = parse_size(text).ok().map(|bytes| bytes.div_ceil(1 << 20));
    mib.filter(in_memory_range).ok_or_else(|| not_memory(text, path, "; write such as `2048Mi`"))
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the shape that `filter` wants")]
fn in_memory_range(mib: &u64) -> bool {
    (CONTAINER_MEMORY_MIB_MIN..=CONTAINER_MEMORY_MIB_MAX).contains(mib)
}

fn not_memory(text: &str, path: &str, help: &str) -> Refusal {
    let wanted = format!("a whole number of MiB from {CONTAINER_MEMORY_MIB_MIN} to {CONTAINER_MEMORY_MIB_MAX}");
    invalid(format!("`{path}` must be {wanted}; {} was given{help}", quote(text)))
}

fn digits(text: &str) -> Option<u64> {
    (!text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())).then(|| text.parse().ok()).flatten()
}

/// A decimal number with up to three decimals, in thousandths; more decimals are rounded up.
fn thousandths(text: &str) -> Option<u64> {
    let (whole, decimals) = text.split_once('.').unwrap_or((text, "0"));
    let exact = decimals.get(..3).unwrap_or(decimals);
    let rest = decimals.get(3..).unwrap_or("");
    let parts = digits(&format!("{exact:0<3}"))?;
    let up = u64::from(!rest.is_empty() && digits(rest)? > 0);
    digits(whole)?.checked_mul(1_000)?.checked_add(parts)?.checked_add(up)
}

fn invalid(message: String) -> Refusal {
    Refusal::new(ReasonCode::InvalidResource, message)
}
