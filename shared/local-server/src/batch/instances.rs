//! What a node of an instance type has. Source: the EC2 user guide's tables of accelerated instances.

/// A node's resources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instance {
    /// vCPUs.
    pub vcpus: u32,
    /// MiB.
    pub memory_mib: u64,
    /// GPUs.
    pub gpus: u32,
}

const GIB: u64 = 1_024;

/// Type, vCPUs, GiB, GPUs.
const KNOWN: [(&str, u32, u64, u32); 32] = [
    ("p3.2xlarge", 8, 61, 1),
    ("p3.8xlarge", 32, 244, 4),
    ("p3.16xlarge", 64, 488, 8),
    ("p3dn.24xlarge", 96, 768, 8),
    ("p4d.24xlarge", 96, 1_152, 8),
    ("p4de.24xlarge", 96, 1_152, 8),
    ("p5.4xlarge", 16, 256, 1),
    ("p5.48xlarge", 192, 2_048, 8),
    ("p5e.48xlarge", 192, 2_048, 8),
    ("p5en.48xlarge", 192, 2_048, 8),
    ("g4dn.xlarge", 4, 16, 1),
    ("g4dn.2xlarge", 8, 32, 1),
    ("g4dn.4xlarge", 16, 64, 1),
    ("g4dn.8xlarge", 32, 128, 1),
    ("g4dn.12xlarge", 48, 192, 4),
    ("g4dn.16xlarge", 64, 256, 1),
    ("g4dn.metal", 96, 384, 8),
    ("g5.xlarge", 4, 16, 1),
    ("g5.2xlarge", 8, 32, 1),
    ("g5.4xlarge", 16, 64, 1),
    ("g5.8xlarge", 32, 128, 1),
    ("g5.12xlarge", 48, 192, 4),
    ("g5.16xlarge", 64, 256, 1),
    ("g5.24xlarge", 96, 384, 4),
    ("g5.48xlarge", 192, 768, 8),
    ("g6.xlarge", 4, 16, 1),
    ("g6.2xlarge", 8, 32, 1),
    ("g6.4xlarge", 16, 64, 1),
    ("g6.12xlarge", 48, 192, 4),
    ("g6.48xlarge", 192, 768, 8),
    ("g6e.12xlarge", 48, 384, 4),
    ("g6e.48xlarge", 192, 1_536, 8),
];

/// A node of the first type that is known; without one, a node without GPUs that has all of the environment's vCPUs,
/// and four GiB for each.
#[must_use]
pub fn node(types: &[String], vcpus_max: u32) -> Instance {
    let known = types.iter().find_map(|asked| KNOWN.iter().find(|(name, ..)| name == asked));
    match known {
        Some((_, vcpus, gib, gpus)) => Instance { vcpus: *vcpus, memory_mib: gib * GIB, gpus: *gpus },
        None => {
            let vcpus = vcpus_max.max(1);
            Instance { vcpus, memory_mib: u64::from(vcpus) * 4 * GIB, gpus: 0 }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_known_type_says_what_a_node_has() {
        let node = |types: &[&str]| node(&types.iter().map(|t| (*t).to_owned()).collect::<Vec<_>>(), 64);
        assert_eq!(node(&["c5.large", "p4d.24xlarge"]), Instance { vcpus: 96, memory_mib: 1_179_648, gpus: 8 });
        assert_eq!(node(&["optimal"]), Instance { vcpus: 64, memory_mib: 262_144, gpus: 0 });
        assert_eq!(super::node(&[], 0).vcpus, 1);
    }
}
