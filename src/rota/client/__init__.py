"""Every question and command there is; the only door to the store for anything outside the engine."""
