"""The peer with the calls that `submit` makes for a job, so that both do the same work on the wire."""

import json
import os

import boto3
import handler

dynamodb = boto3.client("dynamodb")
table = os.environ["OSPREY_TABLE"]


def text(value):
    return {"S": value}


def item(partition, sort, body):
    return {"pk": text(partition), "sk": text(sort), "v": {"N": "1"}, "body": text(body)}


class Table:
    """In place of one PutItem after the call: read, record and claim before it, note the answer after it."""

    def put_item(self, Item):
        job, body = Item["pk"], json.dumps(Item)
        put = {"TableName": table, "Item": item(f"JOB#{job}", "STATE", body), "ConditionExpression": "attribute_not_exists(pk)"}
        for partition in ["USAGE#search", f"JOB#{job}"]:
            dynamodb.query(
                TableName=table, KeyConditionExpression="pk = :p", ExpressionAttributeValues={":p": text(partition)}, ConsistentRead=True
            )  # fmt: skip
        dynamodb.transact_write_items(TransactItems=[{"Put": put}, {"Put": {**put, "Item": item(f"JOB#{job}", "RECORD#000", body)}}])
        dynamodb.put_item(**{**put, "ConditionExpression": "v = :e", "ExpressionAttributeValues": {":e": {"N": "1"}}})
        dynamodb.transact_write_items(TransactItems=[{"Put": put}, {"Put": {**put, "Item": item(f"BATCH#{job}", "JOB", body)}}])


handler.table = Table()

import bootstrap  # noqa: E402,F401 - it runs the loop
