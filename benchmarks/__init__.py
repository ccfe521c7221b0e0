"""What the house costs, as ratios of two things measured in one interleaved run: ``python -m benchmarks``."""
