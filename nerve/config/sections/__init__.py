"""The sections of the configuration: one frozen class each, covering every key of config.md section 2."""
