"""Commands of declared verbs: their arguments and options, what they print."""
