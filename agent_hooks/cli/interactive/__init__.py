"""The slash commands of interactive mode, and the conversation as it is shown there."""
