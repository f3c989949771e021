"""Graphs as arrays: record, schema, columns, shards, digests, invariants and splits."""
