"""Rules: pure functions and transition tables over plain values.  Nothing here waits, reads a clock or knows SQL."""
