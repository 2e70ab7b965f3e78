"""The cost of agent_hooks, as ratios of interleaved runs; see docs/performance.md."""
