"""An application that waits for the driver of its flow to be lost."""
