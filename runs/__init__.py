"""A run as a library: configuration, plan, calibration, training, certificate, comparison."""
