"""Scripts: what happens in a world, generated from seeds, and made shorter when a world fails."""
