"""What Faultline tells other systems about itself: metrics for Prometheus, traces for OpenTelemetry."""
