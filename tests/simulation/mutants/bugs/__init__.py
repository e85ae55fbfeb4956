"""The planted bugs, by the topic that each breaks."""
