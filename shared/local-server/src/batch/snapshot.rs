//! GetJobQueueSnapshot.

use serde_json::{Value, json};

use super::{Input, Members as _};
use crate::failure::Failure;
use crate::service::Service;

pub fn get(service: &Service, input: &Input) -> Result<Value, Failure> {
    let snapshot = service.batch().job_queue_snapshot(input.text("jobQueue").unwrap_or_default())?;
    let jobs: Vec<Value> =
        snapshot.front.iter().map(|(arn, since)| json!({ "jobArn": arn, "earliestTimeAtPosition": since })).collect();
    let used = |vcpus: f64| json!([{ "capacityUnit": "VCPU", "quantity": vcpus }]);
    let mut utilization = json!({ "totalCapacityUsage": used(snapshot.vcpus), "lastUpdatedAt": snapshot.at_ms });
    if let Some(members) = utilization.as_object_mut().filter(|_| snapshot.fair_share) {
        let top: Vec<Value> = snapshot
            .shares
            .iter()
            .map(|(share, vcpus)| json!({ "shareIdentifier": share, "capacityUsage": used(*vcpus) }))
            .collect();
        let shares = json!({ "activeShareCount": snapshot.active_shares, "topCapacityUtilization": top });
        members.insert("fairshareUtilization".to_owned(), shares);
    }
    let front = json!({ "jobs": jobs, "lastUpdatedAt": snapshot.at_ms });
    Ok(json!({ "frontOfQueue": front, "queueUtilization": utilization }))
}
