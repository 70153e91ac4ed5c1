"""Strategy ``kafka_2020``: KIP-441 as first released in code (spring 2020), before trunk's target-first order."""
