//! The store's rules on an emulator of DynamoDB.

use aws_sdk_dynamodb::types::{
    AttributeDefinition, BillingMode, GlobalSecondaryIndex, KeySchemaElement, KeyType, Projection, ProjectionType,
    ScalarAttributeType,
};
use osprey_aws::{Clients, DynamoStore};

use crate::support::{clients, dynamodb_endpoint, run};

/// A table as the template makes it.
pub async fn table(clients: &Clients, name: &str) {
    let key = |name: &str, kind| KeySchemaElement::builder().attribute_name(name).key_type(kind).build().unwrap();
    let text = |name: &str| {
        AttributeDefinition::builder().attribute_name(name).attribute_type(ScalarAttributeType::S).build().unwrap()
    };
    let mut request = clients
        .dynamodb
        .create_table()
        .table_name(name)
        .billing_mode(BillingMode::PayPerRequest)
        .attribute_definitions(text("pk"))
        .attribute_definitions(text("sk"))
        .key_schema(key("pk", KeyType::Hash))
        .key_schema(key("sk", KeyType::Range));
    for index in ["due", "listing", "running"] {
        let (partition, sort) = (format!("{index}_pk"), format!("{index}_sk"));
        request = request.attribute_definitions(text(&partition)).attribute_definitions(text(&sort));
        let index = GlobalSecondaryIndex::builder()
            .index_name(index)
            .key_schema(key(&partition, KeyType::Hash))
            .key_schema(key(&sort, KeyType::Range))
            .projection(Projection::builder().projection_type(ProjectionType::KeysOnly).build());
        request = request.global_secondary_indexes(index.build().unwrap());
    }
    request.send().await.unwrap();
}

/// A name that no other run uses.
pub fn fresh(what: &str) -> String {
    format!("{what}-{}-{}", std::process::id(), jiff::Timestamp::now().as_nanosecond())
}

#[test]
fn the_store_keeps_every_rule_of_the_ports() {
    let Some(endpoint) = dynamodb_endpoint("the store's conformance") else { return };
    run(async {
        let clients = clients(&endpoint, "test", "test").await;
        let name = fresh("conformance");
        table(&clients, &name).await;
        // The emulator counts the whole request against the limit of a transaction, names and braces too.
        osprey_local::conformance::run_with_slack(&DynamoStore::new(clients.dynamodb, name), "c", 16 * 1024).await;
    });
}
