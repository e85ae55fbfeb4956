"""Pure: model, states, policies. No I/O, no clock, no asyncio."""
