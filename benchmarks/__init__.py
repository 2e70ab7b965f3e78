"""What agent_hooks costs, as ratios of interleaved runs; see docs/performance.md."""
