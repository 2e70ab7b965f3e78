"""The values that pass between the rooms: events, answers, content and tools, frozen all the way down."""
