"""One attempt of one handler: its call, its context, its notes and steps."""
