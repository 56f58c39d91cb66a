//! Seeds that found faults, each named after the fault. With the fault put back, the seed fails.
