"""Find the settings files of other agents, and add and remove our entries."""
