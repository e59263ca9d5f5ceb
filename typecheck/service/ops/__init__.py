"""Settings, logs and telemetry of the service."""
